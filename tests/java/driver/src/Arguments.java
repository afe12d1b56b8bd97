import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/** One command's arguments, with defaults. */
final class Arguments {
    private final Map<?, ?> fields;

    Arguments(String line) {
        this(RemotingSerializable.fromJson(line, Map.class));
    }

    Arguments(Map<?, ?> fields) {
        this.fields = fields;
    }

    boolean has(String name) {
        return fields.get(name) != null;
    }

    String text(String name) {
        if (!has(name)) {
            throw new IllegalArgumentException("the command lacks " + name);
        }
        return String.valueOf(fields.get(name));
    }

    String text(String name, String otherwise) {
        return has(name) ? text(name) : otherwise;
    }

    int number(String name, int otherwise) {
        return has(name) ? Integer.parseInt(text(name)) : otherwise;
    }

    long wide(String name, long otherwise) {
        return has(name) ? Long.parseLong(text(name)) : otherwise;
    }

    boolean flag(String name, boolean otherwise) {
        return has(name) ? Boolean.parseBoolean(text(name)) : otherwise;
    }

    Map<?, ?> map(String name) {
        return has(name) ? (Map<?, ?>) fields.get(name) : Map.of();
    }

    List<?> list(String name) {
        return has(name) ? (List<?>) fields.get(name) : List.of();
    }

    /** The list's objects. */
    List<Arguments> each(String name) {
        List<Arguments> found = new ArrayList<>();
        list(name).forEach(item -> found.add(new Arguments((Map<?, ?>) item)));
        return found;
    }
}
