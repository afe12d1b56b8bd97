import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;

/**
 * Messages out of arguments: topic, tag, body, size, keys, delay_level, flag, "properties" (the user's), "system" (any
 * property, past the client's checks), "set" (setters of Message, such as {"delayTimeMs":3000}).
 */
final class Messages {
    /** Number i has the body "{body}{i}" (padded to size) and the key "{keys}{i}". */
    static List<Message> numbered(Arguments command) throws Exception {
        List<Message> messages = new ArrayList<>();
        int first = command.number("first", 0);
        for (int i = first; i < first + command.number("count", 1); i++) {
            messages.add(message(command, String.valueOf(i)));
        }
        return messages;
    }

    static Message one(Arguments command) throws Exception {
        return message(command, "");
    }

    private static Message message(Arguments command, String number) throws Exception {
        byte[] body = body(command.text("body", "body-") + number, command.number("size", 0));
        Message message = new Message(command.text("topic"), command.text("tag", null), body);
        if (command.flag("no_body", false)) {
            message.setBody(new byte[0]);
        }
        if (command.has("keys")) {
            message.setKeys(command.text("keys") + number);
        }
        if (command.has("delay_level")) {
            message.setDelayTimeLevel(command.number("delay_level", 0));
        }
        if (command.has("flag")) {
            message.setFlag(command.number("flag", 0));
        }
        if (command.has("property_name")) {
            message.putUserProperty(command.text("property_name"), command.text("property_value"));
        }
        for (Map.Entry<?, ?> property : command.map("properties").entrySet()) {
            message.putUserProperty(String.valueOf(property.getKey()), String.valueOf(property.getValue()));
        }
        for (Map.Entry<?, ?> property : command.map("system").entrySet()) {
            MessageAccessor.putProperty(message, String.valueOf(property.getKey()), String.valueOf(property.getValue()));
        }
        Reflection.set(message, command.map("set"));
        return message;
    }

    private static byte[] body(String text, int size) {
        byte[] start = text.getBytes(StandardCharsets.UTF_8);
        byte[] body = Arrays.copyOf(start, Math.max(size, start.length));
        Arrays.fill(body, start.length, body.length, (byte) '.');
        return body;
    }

    private Messages() {
    }
}
