import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Base64;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs Apache's mqadmin once per line of standard input, in one JVM: arguments separated by tabs, output in base64. */
public final class Tools {

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            PrintStream captured = new PrintStream(output, true, "UTF-8");
            System.setOut(captured);
            System.setErr(captured);
            try {
                MQAdminStartup.main0(line.split("\t"), null);
            } catch (Throwable error) {
                error.printStackTrace();
            }
            answers.println(Base64.getEncoder().encodeToString(output.toByteArray()));
            answers.flush();
        }
    }
}
