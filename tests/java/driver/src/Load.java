import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Sending as fast as it goes, for benchmarks: {"sent":…,"failed":…,"nanos":…,"first_error":…}. */
final class Load {
    private static final int ASYNC_IN_FLIGHT = 512;

    private final Producers producers;

    Load(Producers producers) {
        this.producers = producers;
    }

    Map<String, Object> send(Arguments command) throws Exception {
        DefaultMQProducer producer = producers.get(command.text("producer"));
        String topic = command.text("topic");
        byte[] body = new byte[command.number("size", 1024)];
        int count = command.number("count", 10_000);
        int threads = command.number("threads", 64);
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(command.wide("limit_ms", 15_000));
        Tally tally = new Tally();
        long start = System.nanoTime();
        if ("async".equals(command.text("mode"))) {
            sendAsync(producer, topic, body, count, deadline, tally);
        } else {
            sendBlocking(producer, topic, body, count, threads, deadline, tally);
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("nanos", System.nanoTime() - start);
        result.put("sent", tally.sent.get());
        result.put("failed", tally.failed.get());
        result.put("first_error", tally.firstError.get());
        return result;
    }

    private static void sendBlocking(DefaultMQProducer producer, String topic, byte[] body, int count, int threads,
            long deadline, Tally tally) throws InterruptedException {
        AtomicInteger left = new AtomicInteger(count);
        CountDownLatch done = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                while (left.getAndDecrement() > 0 && System.nanoTime() < deadline) {
                    try {
                        tally.took(producer.send(new Message(topic, body)), null);
                    } catch (Exception error) {
                        tally.took(null, error);
                    }
                }
                done.countDown();
            }).start();
        }
        done.await();
    }

    private static void sendAsync(DefaultMQProducer producer, String topic, byte[] body, int count, long deadline,
            Tally tally) throws InterruptedException {
        Semaphore room = new Semaphore(ASYNC_IN_FLIGHT);
        for (int i = 0; i < count && System.nanoTime() < deadline; i++) {
            room.acquire();
            Producers.sendAsync(producer, new Message(topic, body)).whenComplete((result, error) -> {
                tally.took(result, error);
                room.release();
            });
        }
        room.acquire(ASYNC_IN_FLIGHT);
    }

    private static final class Tally {
        final AtomicInteger sent = new AtomicInteger();
        final AtomicInteger failed = new AtomicInteger();
        final AtomicReference<String> firstError = new AtomicReference<>();

        void took(SendResult result, Throwable error) {
            if (result != null && result.getSendStatus() == SendStatus.SEND_OK) {
                sent.incrementAndGet();
            } else {
                failed.incrementAndGet();
                firstError.compareAndSet(null, String.valueOf(error == null ? result : error));
            }
        }
    }
}
