import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * Any public method by its name and any property by its setter, with JSON values made into what the method takes. So
 * one source drives every version of the client: what a version lacks is an error when a test asks for it.
 */
final class Reflection {
    private static final String STRATEGIES = "org.apache.rocketmq.client.consumer.rebalance.";

    /** `{"pullBatchSize": 8}` calls setPullBatchSize(8). */
    static void set(Object bean, Map<?, ?> values) throws Exception {
        for (Map.Entry<?, ?> entry : values.entrySet()) {
            String name = String.valueOf(entry.getKey());
            List<Object> value = new ArrayList<>();
            value.add(entry.getValue());
            call(bean, "set" + Character.toUpperCase(name.charAt(0)) + name.substring(1), value);
        }
    }

    /** Of several overloads the first, by the names of its types, that takes these values. Throws what it throws. */
    static Object call(Object target, String name, List<?> values) throws Exception {
        List<Method> named = new ArrayList<>();
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == values.size() && !method.isBridge()) {
                named.add(method);
            }
        }
        named.sort(Comparator.comparing(Method::toGenericString));
        for (Method method : named) {
            Object[] made = make(method, values);
            if (made == null) {
                continue;
            }
            try {
                method.setAccessible(true);
                return method.invoke(target, made);
            } catch (InvocationTargetException error) {
                throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
            }
        }
        throw new NoSuchMethodException(target.getClass().getSimpleName() + "." + name + values + ": " + named);
    }

    private static Object[] make(Method method, List<?> values) throws Exception {
        Type[] types = method.getGenericParameterTypes();
        Object[] made = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
            if (!fits(values.get(i), types[i])) {
                return null;
            }
            made[i] = make(values.get(i), types[i]);
        }
        return made;
    }

    private static Class<?> raw(Type type) {
        return type instanceof ParameterizedType ? (Class<?>) ((ParameterizedType) type).getRawType()
                : type instanceof Class ? (Class<?>) type : Object.class;
    }

    private static boolean fits(Object value, Type type) {
        Class<?> wanted = raw(type);
        if (value == null) {
            return !wanted.isPrimitive();
        }
        if (value instanceof String) {
            return wanted == String.class || wanted == Object.class || wanted.isEnum()
                    || wanted == AllocateMessageQueueStrategy.class;
        }
        if (value instanceof Number) {
            return wanted == Object.class || Set.of("int", "long", "Integer", "Long").contains(wanted.getSimpleName());
        }
        if (value instanceof Boolean) {
            return wanted == boolean.class || wanted == Boolean.class;
        }
        if (value instanceof List) {
            return Collection.class.isAssignableFrom(wanted) || isQueueMap(type);
        }
        return !Collection.class.isAssignableFrom(wanted) && !wanted.isPrimitive() && !wanted.isEnum()
                && !wanted.getName().startsWith("java.lang") && !isQueueMap(type);
    }

    /** A map from queues comes as pairs, because a key in JSON is a text. */
    private static boolean isQueueMap(Type type) {
        return type instanceof ParameterizedType && raw(type) == Map.class
                && ((ParameterizedType) type).getActualTypeArguments()[0] == MessageQueue.class;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object make(Object value, Type type) throws Exception {
        Class<?> wanted = raw(type);
        if (value == null || wanted == String.class || wanted == Object.class) {
            return value;
        }
        if (value instanceof Number) {
            long number = ((Number) value).longValue();
            return Set.of("int", "Integer").contains(wanted.getSimpleName()) ? (Object) (int) number : number;
        }
        if (wanted.isEnum()) {
            return Enum.valueOf((Class<Enum>) wanted, (String) value);
        }
        if (wanted == AllocateMessageQueueStrategy.class) {
            return Class.forName(STRATEGIES + value).getDeclaredConstructor().newInstance();
        }
        if (value instanceof List) {
            return isQueueMap(type) ? queueMap((List<?>) value) : collection((List<?>) value, type);
        }
        return value instanceof Map ? object((Map<?, ?>) value, wanted) : value;
    }

    private static Object object(Map<?, ?> fields, Class<?> wanted) throws Exception {
        if (wanted == MessageQueue.class) {
            return queue(fields);
        }
        if (wanted == Message.class) {
            return Messages.one(new Arguments(fields));
        }
        if (wanted == MessageSelector.class) {
            return selector(new Arguments(fields));
        }
        if (wanted == Map.class) {
            return new LinkedHashMap<>(fields);
        }
        return RemotingSerializable.fromJson(RemotingSerializable.toJson(fields, false), wanted);
    }

    private static Map<MessageQueue, Object> queueMap(List<?> pairs) {
        Map<MessageQueue, Object> made = new LinkedHashMap<>();
        for (Object pair : pairs) {
            made.put(queue((Map<?, ?>) ((List<?>) pair).get(0)), ((Number) ((List<?>) pair).get(1)).longValue());
        }
        return made;
    }

    private static Collection<Object> collection(List<?> values, Type type) throws Exception {
        Type of = type instanceof ParameterizedType ? ((ParameterizedType) type).getActualTypeArguments()[0] : Object.class;
        Collection<Object> made = Set.class.isAssignableFrom(raw(type)) ? new HashSet<>() : new ArrayList<>();
        for (Object value : values) {
            made.add(make(value, of));
        }
        return made;
    }

    static MessageQueue queue(Map<?, ?> fields) {
        Arguments of = new Arguments(fields);
        return new MessageQueue(of.text("topic"), of.text("broker_name", "broker-a"), of.number("queue_id", 0));
    }

    /** {"sql":…} or {"expression":…}. */
    static MessageSelector selector(Arguments of) {
        return of.has("sql") ? MessageSelector.bySql(of.text("sql")) : MessageSelector.byTag(of.text("expression", "*"));
    }

    /** What a getter says that only some versions have; null in the others. */
    static Object getIfThere(Object bean, String getter) {
        try {
            return bean.getClass().getMethod(getter).invoke(bean);
        } catch (ReflectiveOperationException error) {
            return null;
        }
    }

    static List<String> texts(List<?> values) {
        return values.stream().map(String::valueOf).collect(Collectors.toList());
    }

    private Reflection() {
    }
}
