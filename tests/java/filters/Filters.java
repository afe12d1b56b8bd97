import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Apache's own SQL92 filter: {"expression":"…","messages":[{properties},…]} a line in; a line out with one letter a
 * message: T, F, N (null), E (it fails), or X alone when the expression cannot be used. Run from its source.
 */
public final class Filters {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<?, ?> question = RemotingSerializable.fromJson(line, Map.class);
            out.println(answer((String) question.get("expression"), (List<?>) question.get("messages")));
        }
        out.flush();
    }

    private static String answer(String text, List<?> messages) {
        Expression expression;
        try {
            expression = FilterFactory.INSTANCE.get("SQL92").compile(text);
        } catch (Throwable error) {
            return "X";
        }
        StringBuilder letters = new StringBuilder();
        for (Object message : messages) {
            letters.append(outcome(expression, (Map<?, ?>) message));
        }
        return letters.toString();
    }

    private static char outcome(Expression expression, Map<?, ?> message) {
        Map<String, Object> properties = new HashMap<>();
        message.forEach((name, value) -> properties.put((String) name, value));
        try {
            Object outcome = expression.evaluate(new Properties(properties));
            return outcome == null ? 'N' : Boolean.TRUE.equals(outcome) ? 'T' : 'F';
        } catch (Exception error) {
            return 'E';
        }
    }

    private static final class Properties implements EvaluationContext {
        private final Map<String, Object> values;

        Properties(Map<String, Object> values) {
            this.values = values;
        }

        @Override
        public Object get(String name) {
            return values.get(name);
        }

        @Override
        public Map<String, Object> keyValues() {
            return new HashMap<>(values);
        }
    }
}
