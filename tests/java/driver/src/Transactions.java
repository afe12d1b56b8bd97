import java.nio.charset.StandardCharsets;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * A listener that says what the test scripted: commit, rollback, unknown, null or throw. Prints {"event":"executed",…}
 * and {"event":"checked",…}, each with "producer" and the message.
 *
 * <p>The outcomes of checks belong to the body, whichever producer of this process is asked; none left: unknown.
 */
final class Transactions implements TransactionListener {
    private static final Map<String, Deque<String>> CHECKS = new ConcurrentHashMap<>();

    private final String producer;
    private final String scope;

    Transactions(String producer, String scope) {
        this.producer = producer;
        this.scope = scope;
    }

    static void script(String scope, Message message, List<String> checks) {
        CHECKS.put(key(scope, message), new ConcurrentLinkedDeque<>(checks));
    }

    private static String key(String scope, Message message) {
        return scope + " " + new String(message.getBody(), StandardCharsets.UTF_8);
    }

    @Override
    public LocalTransactionState executeLocalTransaction(Message message, Object outcome) {
        report("executed", message);
        return state((String) outcome);
    }

    @Override
    public LocalTransactionState checkLocalTransaction(MessageExt message) {
        report("checked", message);
        Deque<String> left = CHECKS.get(key(scope, message));
        String outcome = left == null ? null : left.poll();
        return state(outcome == null ? "unknown" : outcome);
    }

    private void report(String event, Message message) {
        Map<String, Object> line = Shown.message(message);
        line.put("event", event);
        line.put("producer", producer);
        line.put("at_ms", System.currentTimeMillis());
        Driver.print(line);
    }

    private static LocalTransactionState state(String outcome) {
        switch (outcome) {
            case "commit":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            case "null":
                return null;
            case "throw":
                throw new IllegalStateException("scripted");
            default:
                return LocalTransactionState.UNKNOW;
        }
    }
}
