package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const answerWithin = 20 * time.Second

type producerWanted struct {
	Name         string
	Group        string
	Namesrv      string
	Namespace    string
	Retries      int
	CompressOver int `json:"compress_over"`
	Trace        bool
	Transaction  bool
}

// startProducer answers with the client id.
func startProducer(line []byte) (interface{}, error) {
	wanted := producerWanted{Retries: 2}
	if err := json.Unmarshal(line, &wanted); err != nil {
		return nil, err
	}
	options := []producer.Option{
		producer.WithNameServer([]string{wanted.Namesrv}),
		producer.WithGroupName(wanted.Group),
		producer.WithInstanceName(wanted.Name),
		producer.WithRetry(wanted.Retries),
		producer.WithQueueSelector(selector{producer.NewRoundRobinQueueSelector()}),
		producer.WithSendMsgTimeout(answerWithin),
	}
	if wanted.Namespace != "" {
		options = append(options, producer.WithNamespace(wanted.Namespace))
	}
	if wanted.CompressOver > 0 {
		options = append(options, producer.WithCompressMsgBodyOverHowmuch(wanted.CompressOver))
	}
	if wanted.Trace {
		options = append(options, producer.WithTrace(traceTo(wanted.Group, wanted.Namesrv)))
	}
	if wanted.Transaction {
		return wanted.Name, startTransactional(wanted.Name, options)
	}
	made, err := rocketmq.NewProducer(options...)
	if err != nil {
		return nil, err
	}
	keep(wanted.Name, made)
	return wanted.Name, made.Start()
}

func startTransactional(name string, options []producer.Option) error {
	made, err := rocketmq.NewTransactionProducer(judge{name}, options...)
	if err != nil {
		return err
	}
	keep(name, made)
	return made.Start()
}

func traceTo(group, namesrv string) *primitive.TraceConfig {
	return &primitive.TraceConfig{
		GroupName:    group + "-trace",
		Access:       primitive.Local,
		NamesrvAddrs: []string{namesrv},
		Resolver:     primitive.NewPassthroughResolver([]string{namesrv}),
	}
}

// selector takes the queue that a message names by its id, else one in turn.
type selector struct{ inTurn producer.QueueSelector }

func (s selector) Select(
	message *primitive.Message, queues []*primitive.MessageQueue, lastBroker string,
) *primitive.MessageQueue {
	if message.Queue == nil {
		return s.inTurn.Select(message, queues, lastBroker)
	}
	for _, queue := range queues {
		if queue.QueueId == message.Queue.QueueId {
			return queue
		}
	}
	return nil
}

// judge decides transactions by the messages' own properties: "local" (commit, rollback, unknown) right after the
// send, "checked" when the broker asks.
type judge struct{ producer string }

var verdicts = map[string]primitive.LocalTransactionState{
	"commit":   primitive.CommitMessageState,
	"rollback": primitive.RollbackMessageState,
	"unknown":  primitive.UnknowState,
}

func (judge) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return verdicts[message.GetProperty("local")]
}

func (j judge) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	line := shown(j.producer, message)
	line["event"] = "checked"
	show(line)
	return verdicts[message.GetProperty("checked")]
}

type sendWanted struct {
	Producer   string
	Topic      string
	Mode       string
	Count      int
	First      int
	Body       string
	Size       int
	Tag        string
	Keys       string
	DelayLevel int `json:"delay_level"`
	Queue      *int
	Properties map[string]string
	WithinMs   int `json:"within_ms"`
}

func send(line []byte) (interface{}, error) {
	wanted := sendWanted{Mode: "sync", Count: 1, Body: "body-", WithinMs: 3000}
	if err := json.Unmarshal(line, &wanted); err != nil {
		return nil, err
	}
	part, err := find(wanted.Producer)
	if err != nil {
		return nil, err
	}
	if sender, is := part.(rocketmq.TransactionProducer); is {
		return sendInTransactions(sender, wanted)
	}
	ways := map[string]func(rocketmq.Producer, sendWanted) ([]fields, error){
		"sync": sendSync, "async": sendAsync, "oneway": sendOneWay, "batch": sendBatch, "request": request,
	}
	way, known := ways[wanted.Mode]
	if !known {
		return nil, fmt.Errorf("no such mode: %s", wanted.Mode)
	}
	return way(part.(rocketmq.Producer), wanted)
}

func (wanted sendWanted) messages() []*primitive.Message {
	made := make([]*primitive.Message, wanted.Count)
	for index := range made {
		made[index] = wanted.message(wanted.First + index)
	}
	return made
}

func (wanted sendWanted) message(number int) *primitive.Message {
	body := fmt.Sprintf("%s%d", wanted.Body, number)
	if missing := wanted.Size - len(body); missing > 0 {
		body += strings.Repeat(".", missing)
	}
	made := primitive.NewMessage(wanted.Topic, []byte(body))
	if wanted.Tag != "" {
		made.WithTag(wanted.Tag)
	}
	if wanted.Keys != "" {
		made.WithKeys([]string{fmt.Sprintf("%s%d", wanted.Keys, number)})
	}
	if wanted.DelayLevel > 0 {
		made.WithDelayTimeLevel(wanted.DelayLevel)
	}
	if wanted.Queue != nil {
		made.Queue = &primitive.MessageQueue{QueueId: *wanted.Queue}
	}
	for name, value := range wanted.Properties {
		made.WithProperty(name, value)
	}
	return made
}

func sendSync(sender rocketmq.Producer, wanted sendWanted) ([]fields, error) {
	results := []fields{}
	for _, message := range wanted.messages() {
		result, err := sender.SendSync(context.Background(), message)
		if err != nil {
			return nil, err
		}
		results = append(results, told(result))
	}
	return results, nil
}

func sendAsync(sender rocketmq.Producer, wanted sendWanted) ([]fields, error) {
	answers := make(chan fields, wanted.Count)
	failures := make(chan error, wanted.Count)
	for _, message := range wanted.messages() {
		err := sender.SendAsync(context.Background(), func(_ context.Context, result *primitive.SendResult, err error) {
			if err != nil {
				failures <- err
				return
			}
			answers <- told(result)
		}, message)
		if err != nil {
			return nil, err
		}
	}
	results := []fields{}
	for range make([]struct{}, wanted.Count) {
		select {
		case answer := <-answers:
			results = append(results, answer)
		case err := <-failures:
			return nil, err
		case <-time.After(answerWithin):
			return nil, fmt.Errorf("%d of %d answered", len(results), wanted.Count)
		}
	}
	return results, nil
}

func sendOneWay(sender rocketmq.Producer, wanted sendWanted) ([]fields, error) {
	for _, message := range wanted.messages() {
		if err := sender.SendOneWay(context.Background(), message); err != nil {
			return nil, err
		}
	}
	return []fields{}, nil
}

func sendBatch(sender rocketmq.Producer, wanted sendWanted) ([]fields, error) {
	result, err := sender.SendSync(context.Background(), wanted.messages()...)
	if err != nil {
		return nil, err
	}
	return []fields{told(result)}, nil
}

// request returns the answers that other clients gave.
func request(sender rocketmq.Producer, wanted sendWanted) ([]fields, error) {
	replies := []fields{}
	for _, message := range wanted.messages() {
		within := time.Duration(wanted.WithinMs) * time.Millisecond
		reply, err := sender.Request(context.Background(), within, message)
		if err != nil {
			return nil, err
		}
		replies = append(replies, fields{"body": string(reply.Body), "properties": reply.GetProperties()})
	}
	return replies, nil
}

func sendInTransactions(sender rocketmq.TransactionProducer, wanted sendWanted) ([]fields, error) {
	results := []fields{}
	for _, message := range wanted.messages() {
		result, err := sender.SendMessageInTransaction(context.Background(), message)
		if err != nil {
			return nil, err
		}
		results = append(results, told(result.SendResult))
	}
	return results, nil
}

func told(result *primitive.SendResult) fields {
	return fields{
		"status":        result.Status,
		"msg_id":        result.MsgID,
		"offset_msg_id": result.OffsetMsgID,
		"queue_id":      result.MessageQueue.QueueId,
		"queue_offset":  result.QueueOffset,
	}
}
