package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const shownBodyBytes = 256

type consumerWanted struct {
	Name              string
	Group             string
	Topic             string
	Namesrv           string
	Namespace         string
	Expression        string
	SQL               string
	From              string
	Orderly           bool
	Broadcasting      bool
	Trace             bool
	Pull              bool
	FailUntil         int32  `json:"fail_until"`
	MaxReconsumeTimes int32  `json:"max_reconsume_times"`
	SleepMs           int    `json:"sleep_ms"`
	SuspendMs         int    `json:"suspend_ms"`
	ReplyBy           string `json:"reply_by"`
}

var origins = map[string]consumer.ConsumeFromWhere{
	"first": consumer.ConsumeFromFirstOffset,
	"last":  consumer.ConsumeFromLastOffset,
}

// startConsumer makes a push consumer, or a pull consumer, and answers with its name. The listener prints what it gets
// and fails while a message's reconsume times are below "fail_until" (0: never). With "reply_by", a producer's name,
// it answers requests through that one.
func startConsumer(line []byte) (interface{}, error) {
	wanted := consumerWanted{Expression: "*", From: "first", MaxReconsumeTimes: -1, SuspendMs: 1000}
	if err := json.Unmarshal(line, &wanted); err != nil {
		return nil, err
	}
	if wanted.Pull {
		return wanted.Name, wanted.startPull()
	}
	return wanted.Name, wanted.startPush()
}

func (wanted consumerWanted) options() []consumer.Option {
	options := []consumer.Option{
		consumer.WithNameServer([]string{wanted.Namesrv}),
		consumer.WithGroupName(wanted.Group),
		consumer.WithInstance(wanted.Name),
		consumer.WithConsumeFromWhere(origins[wanted.From]),
		consumer.WithConsumerOrder(wanted.Orderly),
		consumer.WithMaxReconsumeTimes(wanted.MaxReconsumeTimes),
		consumer.WithSuspendCurrentQueueTimeMillis(time.Duration(wanted.SuspendMs) * time.Millisecond),
	}
	if wanted.Namespace != "" {
		options = append(options, consumer.WithNamespace(wanted.Namespace))
	}
	if wanted.Broadcasting {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if wanted.Trace {
		options = append(options, consumer.WithTrace(traceTo(wanted.Group, wanted.Namesrv)))
	}
	return options
}

func (wanted consumerWanted) selector() consumer.MessageSelector {
	if wanted.SQL != "" {
		return consumer.MessageSelector{Type: consumer.SQL92, Expression: wanted.SQL}
	}
	return consumer.MessageSelector{Type: consumer.TAG, Expression: wanted.Expression}
}

func (wanted consumerWanted) startPush() error {
	made, err := rocketmq.NewPushConsumer(wanted.options()...)
	if err != nil {
		return err
	}
	if err := made.Subscribe(wanted.Topic, wanted.selector(), wanted.took); err != nil {
		return err
	}
	if err := made.Start(); err != nil {
		return err
	}
	keep(wanted.Name, made)
	return nil
}

func (wanted consumerWanted) took(
	_ context.Context, messages ...*primitive.MessageExt,
) (consumer.ConsumeResult, error) {
	good := true
	for _, message := range messages {
		show(shown(wanted.Name, message))
		good = good && message.ReconsumeTimes >= wanted.FailUntil
		if wanted.ReplyBy != "" {
			if err := wanted.reply(message); err != nil {
				show(fields{"event": "not replied", "consumer": wanted.Name, "error": err.Error()})
			}
		}
	}
	time.Sleep(time.Duration(wanted.SleepMs) * time.Millisecond)
	if good {
		return consumer.ConsumeSuccess, nil
	}
	if wanted.Orderly {
		return consumer.SuspendCurrentQueueAMoment, nil
	}
	return consumer.ConsumeRetryLater, nil
}

func (wanted consumerWanted) reply(request *primitive.MessageExt) error {
	part, err := find(wanted.ReplyBy)
	if err != nil {
		return err
	}
	answer, err := consumer.CreateReplyMessage(request, nil)
	if err != nil {
		return err
	}
	answer.Body = []byte("reply to " + string(request.Body)) // the client takes a body for properties
	_, err = part.(rocketmq.Producer).SendSync(context.Background(), answer)
	return err
}

func (wanted consumerWanted) startPull() error {
	made, err := rocketmq.NewPullConsumer(wanted.options()...)
	if err != nil {
		return err
	}
	if err := made.Subscribe(wanted.Topic, wanted.selector()); err != nil {
		return err
	}
	if err := made.Start(); err != nil {
		return err
	}
	keep(wanted.Name, made)
	return nil
}

type pullWanted struct {
	Name     string
	Topic    string
	Broker   string
	Queue    *int
	From     int64
	Numbers  int
	WithinMs int `json:"within_ms"`
}

// pull takes from the named queue, or, without one, what the consumer's own loop has fetched; that is acknowledged.
func pull(line []byte) (interface{}, error) {
	wanted := pullWanted{Numbers: 32, WithinMs: 1000}
	if err := json.Unmarshal(line, &wanted); err != nil {
		return nil, err
	}
	part, err := find(wanted.Name)
	if err != nil {
		return nil, err
	}
	if wanted.Queue == nil {
		return wanted.poll(part.(rocketmq.PullConsumer))
	}
	return wanted.pullFrom(part.(rocketmq.PullConsumer))
}

func (wanted pullWanted) pullFrom(puller rocketmq.PullConsumer) (interface{}, error) {
	queue := &primitive.MessageQueue{Topic: wanted.Topic, BrokerName: wanted.Broker, QueueId: *wanted.Queue}
	result, err := puller.PullFrom(context.Background(), queue, wanted.From, wanted.Numbers)
	if err != nil {
		return nil, err
	}
	return fields{
		"status":   result.Status,
		"next":     result.NextBeginOffset,
		"min":      result.MinOffset,
		"max":      result.MaxOffset,
		"messages": allShown(wanted.Name, result.GetMessageExts()),
	}, nil
}

func (wanted pullWanted) poll(puller rocketmq.PullConsumer) (interface{}, error) {
	request, err := puller.Poll(context.Background(), time.Duration(wanted.WithinMs)*time.Millisecond)
	if errors.Is(err, consumer.ErrNoNewMsg) {
		return []fields{}, nil
	}
	if err != nil {
		return nil, err
	}
	messages := allShown(wanted.Name, request.GetMsgList())
	puller.ACK(context.Background(), request, consumer.ConsumeSuccess)
	return messages, nil
}

func allShown(name string, messages []*primitive.MessageExt) []fields {
	lines := []fields{}
	for _, message := range messages {
		lines = append(lines, shown(name, message))
	}
	return lines
}

func shown(name string, message *primitive.MessageExt) fields {
	line := fields{
		"event":           "consumed",
		"consumer":        name,
		"at_ms":           time.Now().UnixNano() / int64(time.Millisecond),
		"msg_id":          message.MsgId,
		"offset_msg_id":   message.OffsetMsgId,
		"topic":           message.Topic,
		"queue_offset":    message.QueueOffset,
		"reconsume_times": message.ReconsumeTimes,
		"tags":            message.GetTags(),
		"keys":            message.GetKeys(),
		"properties":      message.GetProperties(),
		"sys_flag":        message.SysFlag,
		"born_ms":         message.BornTimestamp,
		"stored_ms":       message.StoreTimestamp,
		"size":            len(message.Body),
		"transaction_id":  message.TransactionId,
	}
	if message.Queue != nil {
		line["queue_id"] = message.Queue.QueueId
	}
	if len(message.Body) <= shownBodyBytes {
		line["body"] = fmt.Sprintf("%s", message.Body)
	}
	return line
}
