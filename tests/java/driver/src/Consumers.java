import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Push consumers by name. A listener fails while a message's reconsumeTimes is below "fail_until" (0: never).
 *
 * <p>Every message that a listener gets is printed as {"event":"consumed","consumer":NAME,…} before it is judged,
 * unless "report" is false: then it is only counted.
 */
final class Consumers {
    private static final int SHOWN_BODY_BYTES = 256;

    private final Map<String, DefaultMQPushConsumer> consumers = new ConcurrentHashMap<>();
    private final Map<String, AtomicLong> counts = new ConcurrentHashMap<>();

    String start(Arguments command) throws Exception {
        String name = command.text("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(command.text("group"));
        consumer.setNamesrvAddr(command.text("namesrv"));
        consumer.setInstanceName(name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(
                command.text("from", "CONSUME_FROM_FIRST_OFFSET")));
        consumer.setMaxReconsumeTimes(command.number("max_reconsume_times", -1));
        consumer.setConsumeThreadMin(command.number("threads", 4));
        consumer.setConsumeThreadMax(command.number("threads", 4));
        consumer.setPullBatchSize(command.number("pull_batch", 32));
        consumer.setPersistConsumerOffsetInterval(command.number("persist_interval_ms", 1000));
        consumer.setSuspendCurrentQueueTimeMillis(command.number("suspend_ms", 1000));
        consumer.subscribe(command.text("topic"), command.has("sql")
                ? MessageSelector.bySql(command.text("sql"))
                : MessageSelector.byTag(command.text("expression", "*")));
        counts.put(name, new AtomicLong());
        listen(consumer, name, command);
        try {
            consumer.start();
        } catch (Exception error) {
            consumer.shutdown(); // it may have begun to pull
            throw error;
        }
        consumers.put(name, consumer);
        return consumer.buildMQClientId();
    }

    private void listen(DefaultMQPushConsumer consumer, String name, Arguments command) {
        int failUntil = command.number("fail_until", 0);
        long sleepMs = command.wide("sleep_ms", 0);
        boolean report = command.flag("report", true);
        if (command.flag("orderly", false)) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) ->
                    isGood(name, messages, failUntil, sleepMs, report)
                            ? ConsumeOrderlyStatus.SUCCESS
                            : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                    isGood(name, messages, failUntil, sleepMs, report)
                            ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS
                            : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
    }

    private boolean isGood(String name, List<MessageExt> messages, int failUntil, long sleepMs, boolean report) {
        boolean good = true;
        for (MessageExt message : messages) {
            if (report) {
                Driver.print(show(name, message));
            }
            good &= message.getReconsumeTimes() >= failUntil;
        }
        counts.get(name).addAndGet(messages.size());
        if (sleepMs > 0) {
            try {
                Thread.sleep(sleepMs);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
        return good;
    }

    boolean stop(String name) {
        DefaultMQPushConsumer consumer = consumers.remove(name);
        if (consumer != null) {
            consumer.shutdown();
        }
        return consumer != null;
    }

    long consumedCount(String name) {
        return counts.get(name).get();
    }

    /** The queues that this member holds now. */
    @SuppressWarnings("deprecation") // the only way to see them without asking the broker
    List<Map<String, Object>> queues(String name) {
        List<Map<String, Object>> shown = new ArrayList<>();
        for (MessageQueue queue : consumers.get(name).getDefaultMQPushConsumerImpl().getRebalanceImpl()
                .getProcessQueueTable().keySet()) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("topic", queue.getTopic());
            fields.put("broker_name", queue.getBrokerName());
            fields.put("queue_id", queue.getQueueId());
            shown.add(fields);
        }
        return shown;
    }

    private static Map<String, Object> show(String name, MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("event", "consumed");
        fields.put("consumer", name);
        fields.put("at_ms", System.currentTimeMillis());
        fields.put("msg_id", message.getMsgId());
        fields.put("offset_msg_id",
                message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : null);
        fields.put("topic", message.getTopic());
        fields.put("queue_id", message.getQueueId());
        fields.put("queue_offset", message.getQueueOffset());
        fields.put("reconsume_times", message.getReconsumeTimes());
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("properties", message.getProperties());
        fields.put("sys_flag", message.getSysFlag());
        fields.put("born_ms", message.getBornTimestamp());
        fields.put("stored_ms", message.getStoreTimestamp());
        byte[] body = message.getBody();
        fields.put("size", body.length);
        fields.put("sha1", sha1(body));
        if (body.length <= SHOWN_BODY_BYTES) {
            fields.put("body", new String(body, StandardCharsets.UTF_8));
        }
        return fields;
    }

    private static String sha1(byte[] body) {
        try {
            StringBuilder hex = new StringBuilder();
            for (byte value : MessageDigest.getInstance("SHA-1").digest(body)) {
                hex.append(String.format("%02x", value));
            }
            return hex.toString();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
