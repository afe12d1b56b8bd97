import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.MessageQueueSelector;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Producers by name. A message goes to the queue "queue", to the one that a selector picks by "selector_arg" (modulo
 * the queues), or to any. Messages: see Messages.
 */
final class Producers {
    private static final int SEND_TIMEOUT_MS = 60_000;
    private static final int REPLY_TIMEOUT_MS = 10_000;
    private static final int ROUTE_TRIES_MAX = 5;
    private static final MessageQueueSelector MODULO = (queues, message, number) ->
            queues.get((Integer) number % queues.size());

    private final Clients clients;

    Producers(Clients clients) {
        this.clients = clients;
    }

    /** With "transactional" its listener follows the script of each send (see Transactions); "set": any setters. */
    String start(Arguments command) throws Exception {
        String name = command.text("name");
        String group = command.text("group");
        DefaultMQProducer producer;
        if (command.flag("transactional", false)) {
            producer = new TransactionMQProducer(group);
            ((TransactionMQProducer) producer).setTransactionListener(new Transactions(name, scope(command)));
        } else {
            producer = new DefaultMQProducer(group, command.flag("trace", false), command.text("trace_topic", null));
        }
        producer.setNamesrvAddr(command.text("namesrv"));
        producer.setInstanceName(command.text("instance", name));
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.setMqClientApiTimeout(Clients.API_TIMEOUT_MS);
        producer.setCompressMsgBodyOverHowmuch(command.number("compress_over", 4096));
        producer.setRetryTimesWhenSendFailed(command.number("retries", 2));
        Reflection.set(producer, command.map("set"));
        producer.start();
        clients.add(name, producer);
        return producer.buildMQClientId();
    }

    private static String scope(Arguments command) {
        return command.text("namesrv") + " " + command.text("group");
    }

    DefaultMQProducer get(String name) {
        return clients.get(name, DefaultMQProducer.class);
    }

    /** One result per message; for a batch one for all; for oneway none; for a request the reply. */
    List<Object> send(Arguments command) throws Exception {
        DefaultMQProducer producer = get(command.text("producer"));
        List<Message> messages = Messages.numbered(command);
        List<Object> results = new ArrayList<>();
        switch (command.text("mode", "sync")) {
            case "batch":
                results.add(routed(() -> command.has("queue")
                        ? producer.send(messages, queue(messages.get(0), command)) : producer.send(messages)));
                break;
            case "async":
                List<CompletableFuture<SendResult>> pending = new ArrayList<>();
                for (Message message : messages) {
                    pending.add(sendAsync(producer, message, command));
                }
                for (int i = 0; i < messages.size(); i++) {
                    results.add(awaitRouted(pending.get(i), producer, messages.get(i), command));
                }
                break;
            default:
                for (Message message : messages) {
                    Object result = routed(() -> sendOne(producer, message, command));
                    if (result != null) {
                        results.add(result);
                    }
                }
        }
        List<Object> shown = new ArrayList<>();
        results.forEach(result -> shown.add(Shown.value(result)));
        return shown;
    }

    /**
     * Tries again where the client has no route: it waits for another lookup of its own for 3 s at most
     * (MQClientInstance.LOCK_TIMEOUT_MILLIS), which a busy machine can exceed. Nothing has been sent then.
     */
    private static <T> T routed(Callable<T> send) throws Exception {
        for (int number = 1; ; number++) {
            try {
                return send.call();
            } catch (MQClientException error) {
                if (number == ROUTE_TRIES_MAX || !hasNoRoute(error)) {
                    throw error;
                }
            }
        }
    }

    private static boolean hasNoRoute(Throwable error) {
        String text = String.valueOf(error.getMessage());
        return text.startsWith("No route info") || error.getCause() != null && hasNoRoute(error.getCause());
    }

    private static SendResult awaitRouted(
            CompletableFuture<SendResult> begun, DefaultMQProducer producer, Message message, Arguments command)
            throws Exception {
        try {
            return await(begun, SEND_TIMEOUT_MS);
        } catch (MQClientException error) {
            if (!hasNoRoute(error)) {
                throw error;
            }
            return routed(() -> await(sendAsync(producer, message, command), SEND_TIMEOUT_MS));
        }
    }

    private static Object sendOne(DefaultMQProducer producer, Message message, Arguments command) throws Exception {
        String mode = command.text("mode", "sync");
        long timeoutMs = command.wide("timeout_ms", REPLY_TIMEOUT_MS);
        switch (mode) {
            case "sync":
                return sendSync(producer, message, command);
            case "oneway":
                sendOneway(producer, message, command);
                return null;
            case "transaction":
                Transactions.script(
                        producer.getNamesrvAddr() + " " + producer.getProducerGroup(), message,
                        Reflection.texts(command.list("checks")));
                return producer.sendMessageInTransaction(message, command.text("local", "commit"));
            case "request":
                return command.has("queue")
                        ? producer.request(message, queue(message, command), timeoutMs)
                        : producer.request(message, timeoutMs);
            case "request_async":
                return requestAsync(producer, message, timeoutMs);
            default:
                throw new IllegalArgumentException("no such mode: " + mode);
        }
    }

    private static Message requestAsync(DefaultMQProducer producer, Message message, long timeoutMs) throws Exception {
        CompletableFuture<Message> done = new CompletableFuture<>();
        producer.request(message, new RequestCallback() {
            @Override
            public void onSuccess(Message reply) {
                done.complete(reply);
            }

            @Override
            public void onException(Throwable error) {
                done.completeExceptionally(error);
            }
        }, timeoutMs);
        return await(done, timeoutMs + REPLY_TIMEOUT_MS);
    }

    private static <T> T await(CompletableFuture<T> result, long timeoutMs) throws Exception {
        try {
            return result.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        }
    }

    private static MessageQueue queue(Message message, Arguments command) {
        return new MessageQueue(message.getTopic(), command.text("broker_name", "broker-a"), command.number("queue", 0));
    }

    private static SendResult sendSync(DefaultMQProducer producer, Message message, Arguments command)
            throws Exception {
        if (command.has("selector_arg")) {
            return producer.send(message, MODULO, command.number("selector_arg", 0));
        }
        return command.has("queue") ? producer.send(message, queue(message, command)) : producer.send(message);
    }

    private static void sendOneway(DefaultMQProducer producer, Message message, Arguments command) throws Exception {
        if (command.has("selector_arg")) {
            producer.sendOneway(message, MODULO, command.number("selector_arg", 0));
        } else if (command.has("queue")) {
            producer.sendOneway(message, queue(message, command));
        } else {
            producer.sendOneway(message);
        }
    }

    static CompletableFuture<SendResult> sendAsync(DefaultMQProducer producer, Message message) {
        return sendAsync(producer, message, new Arguments(Map.of()));
    }

    private static CompletableFuture<SendResult> sendAsync(
            DefaultMQProducer producer, Message message, Arguments command) {
        CompletableFuture<SendResult> done = new CompletableFuture<>();
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                done.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                done.completeExceptionally(error);
            }
        };
        try {
            if (command.has("selector_arg")) {
                producer.send(message, MODULO, command.number("selector_arg", 0), callback);
            } else if (command.has("queue")) {
                producer.send(message, queue(message, command), callback);
            } else {
                producer.send(message, callback);
            }
        } catch (Exception error) {
            done.completeExceptionally(error);
        }
        return done;
    }
}
