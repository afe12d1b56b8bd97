import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/**
 * Consumers by name: push, pull and lite pull. "set" calls any setters before the start. Subscriptions: "topic" with
 * "expression" or "sql", and the same per item of "subscriptions". What a listener does: see Listener.
 */
@SuppressWarnings("deprecation") // DefaultMQPullConsumer and the view into a member's queues
final class Consumers {
    private final Clients clients;
    private final Map<String, Listener> listeners = new ConcurrentHashMap<>();

    Consumers(Clients clients) {
        this.clients = clients;
    }

    String start(Arguments command) throws Exception {
        String name = command.text("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
                command.text("group"), command.flag("trace", false), command.text("trace_topic", null));
        consumer.setNamesrvAddr(command.text("namesrv"));
        consumer.setMqClientApiTimeout(Clients.API_TIMEOUT_MS);
        consumer.setInstanceName(command.text("instance", name));
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(
                command.text("from", "CONSUME_FROM_FIRST_OFFSET")));
        consumer.setMaxReconsumeTimes(command.number("max_reconsume_times", -1));
        consumer.setConsumeThreadMin(command.number("threads", 4));
        consumer.setConsumeThreadMax(command.number("threads", 4));
        consumer.setPullBatchSize(command.number("pull_batch", 32));
        consumer.setPersistConsumerOffsetInterval(command.number("persist_interval_ms", 1000));
        consumer.setSuspendCurrentQueueTimeMillis(command.number("suspend_ms", 1000));
        Reflection.set(consumer, command.map("set"));
        if (command.has("topic")) {
            consumer.subscribe(command.text("topic"), Reflection.selector(command));
        }
        for (Arguments each : command.each("subscriptions")) {
            consumer.subscribe(each.text("topic"), Reflection.selector(each));
        }
        Listener listener = new Listener(name, command, clients);
        listeners.put(name, listener);
        if (command.flag("orderly", false)) {
            consumer.registerMessageListener((MessageListenerOrderly) listener::orderly);
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) listener::concurrently);
        }
        try {
            consumer.start();
        } catch (Exception error) {
            consumer.shutdown(); // it may have begun to pull
            throw error;
        }
        Clients.letWait(consumer);
        clients.add(name, consumer);
        return consumer.buildMQClientId();
    }

    String startPull(Arguments command) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(command.text("group"));
        consumer.setNamesrvAddr(command.text("namesrv"));
        consumer.setMqClientApiTimeout(Clients.API_TIMEOUT_MS);
        consumer.setInstanceName(command.text("instance", command.text("name")));
        consumer.setConsumerPullTimeoutMillis(Clients.API_TIMEOUT_MS);
        Reflection.set(consumer, command.map("set"));
        consumer.start();
        clients.add(command.text("name"), consumer);
        return consumer.buildMQClientId();
    }

    String startLitePull(Arguments command) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(command.text("group"));
        consumer.setNamesrvAddr(command.text("namesrv"));
        consumer.setMqClientApiTimeout(Clients.API_TIMEOUT_MS);
        consumer.setInstanceName(command.text("instance", command.text("name")));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        Reflection.set(consumer, command.map("set"));
        for (Arguments each : command.each("subscriptions")) {
            consumer.subscribe(each.text("topic"), Reflection.selector(each));
        }
        consumer.start();
        clients.add(command.text("name"), consumer);
        return consumer.buildMQClientId();
    }

    long consumedCount(String name) {
        return listeners.get(name).count.get();
    }

    /** The queues that this member holds now. */
    Object queues(String name) {
        return Shown.value(List.copyOf(clients.get(name, DefaultMQPushConsumer.class).getDefaultMQPushConsumerImpl()
                .getRebalanceImpl().getProcessQueueTable().keySet()));
    }
}
