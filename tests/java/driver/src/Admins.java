import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * Apache's admin library; one instance per name server. "what" names one of the questions below; any other call of the
 * library is {"what":"call","method":…,"arguments":[…]}, its arguments as in Reflection.
 */
final class Admins {
    private final Map<String, DefaultMQAdminExt> admins = new ConcurrentHashMap<>();

    Object ask(Arguments command) throws Exception {
        DefaultMQAdminExt admin = of(command.text("namesrv"));
        switch (command.text("what")) {
            case "call":
                return Shown.value(Reflection.call(admin, command.text("method"), command.list("arguments")));
            case "route":
                return admin.examineTopicRouteInfo(command.text("topic"));
            case "clusters":
                return admin.examineBrokerClusterInfo();
            case "topics":
                return new ArrayList<>(admin.fetchAllTopicList().getTopicList());
            case "connections":
                return admin.examineConsumerConnectionInfo(command.text("group"));
            case "consume_stats":
                return consumeStats(admin, command.text("group"));
            case "min_offset":
                return admin.minOffset(queue(command));
            case "max_offset":
                return admin.maxOffset(queue(command));
            case "search_offset":
                return admin.searchOffset(queue(command), command.wide("timestamp", 0));
            default:
                throw new IllegalArgumentException("no such question: " + command.text("what"));
        }
    }

    private DefaultMQAdminExt of(String namesrv) throws Exception {
        synchronized (admins) {
            DefaultMQAdminExt admin = admins.get(namesrv);
            if (admin == null) {
                admin = new DefaultMQAdminExt(Clients.API_TIMEOUT_MS);
                admin.setNamesrvAddr(namesrv);
                admin.setMqClientApiTimeout(Clients.API_TIMEOUT_MS);
                admin.setInstanceName("admin-" + namesrv.replace(':', '-'));
                admin.start();
                Clients.letWait(admin);
                admins.put(namesrv, admin);
            }
            return admin;
        }
    }

    private static MessageQueue queue(Arguments command) {
        String broker = command.text("broker_name", "broker-a");
        return new MessageQueue(command.text("topic"), broker, command.number("queue", 0));
    }

    private static List<Map<String, Object>> consumeStats(DefaultMQAdminExt admin, String group) throws Exception {
        List<Map<String, Object>> rows = new ArrayList<>();
        var stats = admin.examineConsumeStats(group);
        stats.getOffsetTable().forEach((queue, offsets) -> {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("topic", queue.getTopic());
            row.put("queue_id", queue.getQueueId());
            row.put("max_offset", offsets.getBrokerOffset());
            row.put("committed_offset", offsets.getConsumerOffset());
            rows.add(row);
        });
        return rows;
    }
}
