import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/** Producers by name. Message number i of a "send" has body "{body}{i}" (padded to size) and key "{keys}{i}". */
final class Producers {
    private static final int TIMEOUT_MS = 10_000;

    private final Map<String, DefaultMQProducer> producers = new ConcurrentHashMap<>();

    String start(Arguments command) throws Exception {
        String name = command.text("name");
        DefaultMQProducer producer = new DefaultMQProducer(command.text("group"));
        producer.setNamesrvAddr(command.text("namesrv"));
        producer.setInstanceName(name);
        producer.setSendMsgTimeout(TIMEOUT_MS);
        producer.setCompressMsgBodyOverHowmuch(command.number("compress_over", 4096));
        producer.setRetryTimesWhenSendFailed(command.number("retries", 2));
        producer.start();
        producers.put(name, producer);
        return producer.buildMQClientId();
    }

    boolean stop(String name) {
        DefaultMQProducer producer = producers.remove(name);
        if (producer != null) {
            producer.shutdown();
        }
        return producer != null;
    }

    DefaultMQProducer get(String name) {
        DefaultMQProducer producer = producers.get(name);
        if (producer == null) {
            throw new IllegalArgumentException("no producer " + name);
        }
        return producer;
    }

    /** One result per message; for a batch one for all; for oneway none. */
    List<Map<String, Object>> send(Arguments command) throws Exception {
        DefaultMQProducer producer = get(command.text("producer"));
        List<Message> messages = messages(command);
        List<SendResult> results = new ArrayList<>();
        switch (command.text("mode", "sync")) {
            case "sync":
                for (Message message : messages) {
                    results.add(sendSync(producer, message, command));
                }
                break;
            case "async":
                List<CompletableFuture<SendResult>> pending = new ArrayList<>();
                for (Message message : messages) {
                    pending.add(sendAsync(producer, message));
                }
                for (CompletableFuture<SendResult> result : pending) {
                    results.add(result.get(TIMEOUT_MS, TimeUnit.MILLISECONDS));
                }
                break;
            case "oneway":
                for (Message message : messages) {
                    producer.sendOneway(message);
                }
                break;
            case "batch":
                results.add(producer.send(messages));
                break;
            default:
                throw new IllegalArgumentException("no such mode: " + command.text("mode"));
        }
        List<Map<String, Object>> shown = new ArrayList<>();
        results.forEach(result -> shown.add(show(result)));
        return shown;
    }

    private static SendResult sendSync(DefaultMQProducer producer, Message message, Arguments command)
            throws Exception {
        if (!command.has("queue")) {
            return producer.send(message);
        }
        String broker = command.text("broker_name", "broker-a");
        return producer.send(message, new MessageQueue(message.getTopic(), broker, command.number("queue", 0)));
    }

    static CompletableFuture<SendResult> sendAsync(DefaultMQProducer producer, Message message) {
        CompletableFuture<SendResult> done = new CompletableFuture<>();
        try {
            producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    done.complete(result);
                }

                @Override
                public void onException(Throwable error) {
                    done.completeExceptionally(error);
                }
            });
        } catch (Exception error) {
            done.completeExceptionally(error);
        }
        return done;
    }

    private static List<Message> messages(Arguments command) {
        List<Message> messages = new ArrayList<>();
        int first = command.number("first", 0);
        for (int i = first; i < first + command.number("count", 1); i++) {
            messages.add(message(command, i));
        }
        return messages;
    }

    private static Message message(Arguments command, int number) {
        byte[] body = body(command.text("body", "body-") + number, command.number("size", 0));
        Message message = new Message(command.text("topic"), command.text("tag", null), body);
        if (command.has("keys")) {
            message.setKeys(command.text("keys") + number);
        }
        if (command.has("delay_level")) {
            message.setDelayTimeLevel(command.number("delay_level", 0));
        }
        if (command.has("property_name")) {
            message.putUserProperty(command.text("property_name"), command.text("property_value"));
        }
        return message;
    }

    private static byte[] body(String text, int size) {
        byte[] start = text.getBytes(StandardCharsets.UTF_8);
        byte[] body = Arrays.copyOf(start, Math.max(size, start.length));
        Arrays.fill(body, start.length, body.length, (byte) '.');
        return body;
    }

    private static Map<String, Object> show(SendResult result) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("status", result.getSendStatus().name());
        fields.put("msg_id", result.getMsgId());
        fields.put("offset_msg_id", result.getOffsetMsgId());
        fields.put("queue_id", result.getMessageQueue().getQueueId());
        fields.put("broker_name", result.getMessageQueue().getBrokerName());
        fields.put("queue_offset", result.getQueueOffset());
        return fields;
    }
}
