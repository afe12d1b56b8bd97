import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sending as fast as it goes: {"sent":…,"failed":…,"nanos":…,"first_error":…}.
 *
 * <p>With "numbered", message i has the body "n-{i}" instead of zeros, and "acknowledged" lists those i that the broker
 * answered for. With "until_error" a load of threads ends when one of their sends throws.
 */
final class Load {
    private static final int ASYNC_IN_FLIGHT = 512;

    private final Producers producers;

    Load(Producers producers) {
        this.producers = producers;
    }

    Map<String, Object> send(Arguments command) throws Exception {
        DefaultMQProducer producer = producers.get(command.text("producer"));
        String topic = command.text("topic");
        boolean numbered = command.flag("numbered", false);
        byte[] zeros = new byte[command.number("size", 1024)];
        IntFunction<byte[]> body = i -> numbered ? ("n-" + i).getBytes(StandardCharsets.US_ASCII) : zeros;
        int count = command.number("count", 10_000);
        int threads = command.number("threads", 64);
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(command.wide("limit_ms", 15_000));
        Tally tally = new Tally(numbered, command.flag("until_error", false));
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
        if (numbered) {
            result.put("acknowledged", tally.acknowledged);
        }
        return result;
    }

    private static void sendBlocking(DefaultMQProducer producer, String topic, IntFunction<byte[]> body, int count, int threads,
            long deadline, Tally tally) throws InterruptedException {
        AtomicInteger numbers = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            new Thread(() -> {
                for (int number = numbers.getAndIncrement();
                        number < count && System.nanoTime() < deadline && !tally.isOver;
                        number = numbers.getAndIncrement()) {
                    try {
                        tally.took(number, producer.send(new Message(topic, body.apply(number))), null);
                    } catch (Exception error) {
                        tally.took(number, null, error);
                    }
                }
                done.countDown();
            }).start();
        }
        done.await();
    }

    private static void sendAsync(DefaultMQProducer producer, String topic, IntFunction<byte[]> body, int count, long deadline,
            Tally tally) throws InterruptedException {
        Semaphore room = new Semaphore(ASYNC_IN_FLIGHT);
        for (int i = 0; i < count && System.nanoTime() < deadline; i++) {
            room.acquire();
            int number = i;
            Producers.sendAsync(producer, new Message(topic, body.apply(i))).whenComplete((result, error) -> {
                tally.took(number, result, error);
                room.release();
            });
        }
        room.acquire(ASYNC_IN_FLIGHT);
    }

    private static final class Tally {
        final AtomicInteger sent = new AtomicInteger();
        final AtomicInteger failed = new AtomicInteger();
        final AtomicReference<String> firstError = new AtomicReference<>();

        final Queue<Integer> acknowledged = new ConcurrentLinkedQueue<>();
        volatile boolean isOver;
        private final boolean numbered;
        private final boolean untilError;

        Tally(boolean numbered, boolean untilError) {
            this.numbered = numbered;
            this.untilError = untilError;
        }

        void took(int number, SendResult result, Throwable error) {
            if (result != null && result.getSendStatus() == SendStatus.SEND_OK) {
                sent.incrementAndGet();
                if (numbered) {
                    acknowledged.add(number);
                }
            } else {
                failed.incrementAndGet();
                firstError.compareAndSet(null, String.valueOf(error == null ? result : error));
                if (untilError && error != null) {
                    isOver = true;
                }
            }
        }
    }
}
