import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Apache's own allocation strategies: {"strategy":"…","queues":{broker:number,…},"members":[…], …} a line in; a line out with the sorted members' queues as indices into the sorted queues, or ! where it raises. Run
 * from its source.
 */
public final class Allocation {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(RemotingSerializable.fromJson(line, Map.class)));
        }
        out.flush();
    }

    private static String answer(Map<?, ?> question) throws Exception {
        List<MessageQueue> queues = new ArrayList<>();
        ((Map<?, ?>) question.get("queues")).forEach((broker, count) -> {
            for (int number = 0; number < (Integer) count; number++) {
                queues.add(new MessageQueue("orders", (String) broker, number));
            }
        });
        List<String> members = texts(question.get("members"));
        Collections.sort(queues);
        Collections.sort(members);
        StringBuilder all = new StringBuilder();
        for (String member : members) {
            all.append(all.length() == 0 ? "" : " / ");
            try {
                AllocateMessageQueueStrategy strategy = strategy((String) question.get("strategy"), question);
                List<String> numbers = new ArrayList<>();
                for (MessageQueue queue : strategy.allocate("billing", member, queues, members)) {
                    numbers.add(String.valueOf(queues.indexOf(queue)));
                }
                all.append(numbers.isEmpty() ? "-" : String.join(" ", numbers));
            } catch (IllegalArgumentException error) {
                all.append("!");
            }
        }
        return all.toString();
    }

    private static AllocateMessageQueueStrategy strategy(String name, Map<?, ?> question) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONFIG":
                AllocateMessageQueueByConfig configured = new AllocateMessageQueueByConfig();
                configured.setMessageQueueList(queues(question.get("configured")));
                return configured;
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(new HashSet<>(texts(question.get("rooms"))));
                return room;
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash((Integer) question.get("virtual_nodes"));
            default:
                String inner = name.substring("MACHINE_ROOM_NEARBY-".length());
                return new AllocateMachineRoomNearby(strategy(inner, question), new FirstWord());
        }
    }

    private static List<MessageQueue> queues(Object lists) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Object list : (List<?>) lists) {
            List<?> parts = (List<?>) list;
            queues.add(new MessageQueue("orders", (String) parts.get(0), (Integer) parts.get(1)));
        }
        return queues;
    }

    private static List<String> texts(Object list) {
        List<String> texts = new ArrayList<>();
        for (Object text : (List<?>) list) {
            texts.add((String) text);
        }
        return texts;
    }

    /** The room is what comes before the first "-" of a name. */
    private static final class FirstWord implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return queue.getBrokerName().split("-", 2)[0];
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return clientId.split("-", 2)[0];
        }
    }
}
