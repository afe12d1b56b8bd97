import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * What a push consumer does with its messages.
 *
 * <p>"outcomes" maps a body (or "*") to a list: one entry per delivery of that body here, the last one repeated. An
 * entry is a word (ok, later, throw, null; orderly also commit, rollback) or {"do":word,"sleep_ms":…,"context":{…}},
 * where the context's setters are called before the answer (ackIndex, delayLevelWhenNextConsume, …). A body without a
 * script fails while its reconsumeTimes is below "fail_until". Of a batch, the first word that isn't ok counts.
 *
 * <p>Every message is printed as {"event":"consumed","consumer":NAME,…} before it is judged, unless "report" is false:
 * then it is only counted. With "ends", {"event":"finished",…} follows when the listener returns.
 */
final class Listener {
    private final String name;
    private final Arguments command;
    private final Clients clients;
    private final Map<?, ?> outcomes;
    private final Map<String, AtomicInteger> deliveries = new ConcurrentHashMap<>();
    private final AtomicInteger batches = new AtomicInteger();
    final AtomicLong count = new AtomicLong();

    Listener(String name, Arguments command, Clients clients) {
        this.name = name;
        this.command = command;
        this.clients = clients;
        this.outcomes = command.map("outcomes");
    }

    ConsumeConcurrentlyStatus concurrently(List<MessageExt> messages, Object context) {
        switch (outcome(messages, context)) {
            case "ok":
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            case "null":
                return null;
            default:
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        }
    }

    @SuppressWarnings("deprecation") // commit and rollback are what orderly consumers of a binlog use
    ConsumeOrderlyStatus orderly(List<MessageExt> messages, Object context) {
        switch (outcome(messages, context)) {
            case "ok":
                return ConsumeOrderlyStatus.SUCCESS;
            case "commit":
                return ConsumeOrderlyStatus.COMMIT;
            case "rollback":
                return ConsumeOrderlyStatus.ROLLBACK;
            case "null":
                return null;
            default:
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
        }
    }

    private String outcome(List<MessageExt> messages, Object context) {
        int batch = batches.incrementAndGet();
        report("consumed", messages, batch);
        count.addAndGet(messages.size());
        List<Arguments> entries = new ArrayList<>();
        messages.forEach(message -> entries.add(entry(message)));
        pause(command.wide("sleep_ms", 0));
        String outcome = "ok";
        for (Arguments entry : entries) {
            pause(entry.wide("sleep_ms", 0));
            try {
                Reflection.set(context, entry.map("context"));
            } catch (Exception error) {
                throw new IllegalArgumentException(error);
            }
            outcome = "ok".equals(outcome) ? entry.text("do", "ok") : outcome;
        }
        if (command.has("reply_with")) {
            messages.forEach(this::reply);
        }
        if (command.flag("ends", false)) {
            report("finished", messages, batch);
        }
        if ("throw".equals(outcome)) {
            throw new IllegalStateException("scripted");
        }
        return outcome;
    }

    private Arguments entry(MessageExt message) {
        String body = new String(message.getBody(), StandardCharsets.UTF_8);
        int delivery = deliveries.computeIfAbsent(body, key -> new AtomicInteger()).getAndIncrement();
        Object script = outcomes.containsKey(body) ? outcomes.get(body) : outcomes.get("*");
        if (script == null) {
            boolean good = message.getReconsumeTimes() >= command.number("fail_until", 0);
            return new Arguments(Map.of("do", good ? "ok" : "later"));
        }
        List<?> entries = (List<?>) script;
        Object entry = entries.get(Math.min(delivery, entries.size() - 1));
        return new Arguments(entry instanceof Map ? (Map<?, ?>) entry : Map.of("do", entry));
    }

    private void report(String event, List<MessageExt> messages, int batch) {
        if (!command.flag("report", true)) {
            return;
        }
        for (MessageExt message : messages) {
            Map<String, Object> line = Shown.message(message);
            line.put("event", event);
            line.put("consumer", name);
            line.put("at_ms", System.currentTimeMillis());
            line.put("thread", Thread.currentThread().getName());
            line.put("batch", batch);
            line.put("batch_size", messages.size());
            Driver.print(line);
        }
    }

    /** "reply": its body; the answer's own outcome is printed as {"event":"replied",…}. */
    private void reply(MessageExt request) {
        Map<String, Object> line;
        try {
            byte[] body = command.text("reply", "reply").getBytes(StandardCharsets.UTF_8);
            DefaultMQProducer producer = clients.get(command.text("reply_with"), DefaultMQProducer.class);
            line = Shown.sent(producer.send(MessageUtil.createReplyMessage(request, body)));
        } catch (Exception error) {
            line = Shown.error(error);
        }
        line.put("event", "replied");
        line.put("consumer", name);
        Driver.print(line);
    }

    private static void pause(long sleepMs) {
        if (sleepMs <= 0) {
            return;
        }
        try {
            Thread.sleep(sleepMs);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
