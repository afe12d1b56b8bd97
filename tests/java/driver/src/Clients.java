import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.impl.MQClientManager;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;

/** Everything that a test started, by its name: producers and consumers of every kind. */
final class Clients {
    /** For what a client asks besides sends and pulls: a server that stands still for a moment is not given up. */
    static final int API_TIMEOUT_MS = 60_000;

    /** For what a started client asks about offsets, and for what it sends back by itself. */
    static void letWait(ClientConfig client) {
        MQClientInstance instance = MQClientManager.getInstance().getOrCreateMQClientInstance(client);
        instance.getMQAdminImpl().setTimeoutMillis(API_TIMEOUT_MS);
        instance.getDefaultMQProducer().setSendMsgTimeout(API_TIMEOUT_MS);
    }

    private final Map<String, Object> byName = new ConcurrentHashMap<>();

    void add(String name, Object client) {
        byName.put(name, client);
    }

    <T> T get(String name, Class<T> kind) {
        Object client = byName.get(name);
        if (!kind.isInstance(client)) {
            throw new IllegalArgumentException("no " + kind.getSimpleName() + " with the name " + name);
        }
        return kind.cast(client);
    }

    /** Its own orderly shutdown. False for a name that nobody has. */
    boolean stop(String name) throws Exception {
        Object client = byName.remove(name);
        if (client == null) {
            return false;
        }
        Reflection.call(client, "shutdown", List.of());
        return true;
    }
}
