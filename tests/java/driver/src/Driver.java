import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * An Apache RocketMQ client that a test drives: commands in, one JSON object a line; answers and events out.
 *
 * <p>A command is {"id":1,"do":"send",…}. Its answer is {"id":1,"ok":true,"value":…} or {"id":1,"ok":false,
 * "error":…,"kind":…,"code":…}. What a listener gets is {"event":"consumed",…} (see Listener). Commands run side by
 * side. The end of standard input ends the process, so no test leaves one behind.
 */
public final class Driver {
    /** Ours alone: what a library prints must not fall into the middle of a long line. */
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    private final Clients clients = new Clients();
    private final Producers producers = new Producers(clients);
    private final Consumers consumers = new Consumers(clients);
    private final Admins admins = new Admins();
    private final Load load = new Load(producers);

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        Driver driver = new Driver();
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Arguments command = new Arguments(line);
            workers.execute(() -> driver.answer(command));
        }
        // No orderly farewell: a test that wants one says "stop" first.
        Runtime.getRuntime().halt(0);
    }

    private void answer(Arguments command) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", command.number("id", 0));
        try {
            answer.put("value", run(command));
            answer.put("ok", true);
        } catch (Throwable error) {
            answer.put("ok", false);
            answer.putAll(Shown.error(error));
        }
        print(answer);
    }

    private Object run(Arguments command) throws Exception {
        switch (command.text("do")) {
            case "producer":
                return producers.start(command);
            case "send":
                return producers.send(command);
            case "consumer":
                return consumers.start(command);
            case "pull_consumer":
                return consumers.startPull(command);
            case "lite_pull_consumer":
                return consumers.startLitePull(command);
            case "call":
                return call(command);
            case "queues":
                return consumers.queues(command.text("name"));
            case "consumed_count":
                return consumers.consumedCount(command.text("name"));
            case "stop":
                return clients.stop(command.text("name"));
            case "admin":
                return admins.ask(command);
            case "send_load":
                return load.send(command);
            default:
                throw new IllegalArgumentException("no such command: " + command.text("do"));
        }
    }

    /** Any public method of a client that was started: {"name":…,"method":…,"arguments":[…]}. */
    private Object call(Arguments command) throws Exception {
        Object client = clients.get(command.text("name"), Object.class);
        return Shown.value(Reflection.call(client, command.text("method"), command.list("arguments")));
    }

    static void print(Map<String, Object> line) {
        String text = RemotingSerializable.toJson(line, false);
        synchronized (OUT) {
            OUT.println(text);
            OUT.flush();
        }
    }
}
