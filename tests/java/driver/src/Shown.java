import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** What the client's classes say, as JSON fields that are the same in every version. */
final class Shown {
    private static final int SHOWN_BODY_BYTES = 256;

    static Object value(Object value) {
        if (value instanceof SendResult) {
            return sent((SendResult) value);
        } else if (value instanceof Message) {
            return message((Message) value);
        } else if (value instanceof MessageQueue) {
            return queue((MessageQueue) value);
        } else if (value instanceof PullResult) {
            return pulled((PullResult) value);
        } else if (value instanceof QueryResult) {
            return value(((QueryResult) value).getMessageList());
        } else if (value instanceof Enum) {
            return ((Enum<?>) value).name();
        } else if (value instanceof Collection) {
            List<Object> shown = new ArrayList<>();
            ((Collection<?>) value).forEach(each -> shown.add(value(each)));
            return shown;
        } else if (value instanceof Map) {
            return map((Map<?, ?>) value);
        }
        return value;
    }

    /** A map whose keys are objects becomes a list of pairs. */
    private static Object map(Map<?, ?> value) {
        if (value.keySet().stream().allMatch(key -> key instanceof String)) {
            Map<Object, Object> shown = new LinkedHashMap<>();
            value.forEach((key, each) -> shown.put(key, value(each)));
            return shown;
        }
        List<Object> pairs = new ArrayList<>();
        value.forEach((key, each) -> pairs.add(List.of(value(key), value(each))));
        return pairs;
    }

    static Map<String, Object> queue(MessageQueue queue) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("topic", queue.getTopic());
        fields.put("broker_name", queue.getBrokerName());
        fields.put("queue_id", queue.getQueueId());
        return fields;
    }

    static Map<String, Object> sent(SendResult result) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("status", result.getSendStatus().name());
        fields.put("msg_id", result.getMsgId());
        fields.put("offset_msg_id", result.getOffsetMsgId());
        fields.put("queue_id", result.getMessageQueue().getQueueId());
        fields.put("broker_name", result.getMessageQueue().getBrokerName());
        fields.put("topic", result.getMessageQueue().getTopic());
        fields.put("queue_offset", result.getQueueOffset());
        fields.put("transaction_id", result.getTransactionId());
        fields.put("region_id", result.getRegionId());
        fields.put("recall_handle", Reflection.getIfThere(result, "getRecallHandle"));
        if (result instanceof TransactionSendResult) {
            fields.put("local_state", value(((TransactionSendResult) result).getLocalTransactionState()));
        }
        return fields;
    }

    private static Map<String, Object> pulled(PullResult result) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("status", result.getPullStatus().name());
        fields.put("next_offset", result.getNextBeginOffset());
        fields.put("min_offset", result.getMinOffset());
        fields.put("max_offset", result.getMaxOffset());
        fields.put("messages", result.getMsgFoundList() == null ? new ArrayList<>() : value(result.getMsgFoundList()));
        return fields;
    }

    static Map<String, Object> message(Message message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("topic", message.getTopic());
        fields.put("tags", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("flag", message.getFlag());
        fields.put("transaction_id", message.getTransactionId());
        fields.put("properties", message.getProperties());
        if (message instanceof MessageExt) {
            stored((MessageExt) message, fields);
        }
        byte[] body = message.getBody();
        fields.put("size", body == null ? -1 : body.length);
        if (body != null) {
            fields.put("sha1", sha1(body));
            if (body.length <= SHOWN_BODY_BYTES) {
                fields.put("body", new String(body, StandardCharsets.UTF_8));
            }
        }
        return fields;
    }

    private static void stored(MessageExt message, Map<String, Object> fields) {
        fields.put("msg_id", message.getMsgId());
        fields.put("offset_msg_id",
                message instanceof MessageClientExt ? ((MessageClientExt) message).getOffsetMsgId() : null);
        fields.put("queue_id", message.getQueueId());
        fields.put("queue_offset", message.getQueueOffset());
        fields.put("reconsume_times", message.getReconsumeTimes());
        fields.put("prepared_offset", message.getPreparedTransactionOffset());
        fields.put("sys_flag", message.getSysFlag());
        fields.put("stored_bytes", message.getStoreSize());
        fields.put("born_ms", message.getBornTimestamp());
        fields.put("stored_ms", message.getStoreTimestamp());
    }

    /** kind: the exception's class; code: RocketMQ's response code, -1 where there is none. */
    static Map<String, Object> error(Throwable error) {
        int code = error instanceof MQBrokerException ? ((MQBrokerException) error).getResponseCode()
                : error instanceof MQClientException ? ((MQClientException) error).getResponseCode()
                : error instanceof RequestTimeoutException ? ((RequestTimeoutException) error).getResponseCode() : -1;
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("error", error.toString());
        fields.put("kind", error.getClass().getSimpleName());
        fields.put("code", code);
        return fields;
    }

    private static String sha1(byte[] body) {
        try {
            StringBuilder hex = new StringBuilder();
            for (byte value : MessageDigest.getInstance("SHA-1").digest(body)) {
                hex.append(String.format("%02x", value));
            }
            return hex.toString();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    private Shown() {
    }
}
