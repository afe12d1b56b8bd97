package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

type adminWanted struct {
	What    string
	Namesrv string
	Broker  string
	Topic   string
	Queues  int
}

// asker is what admin.NewAdmin returns.
type asker interface {
	CreateTopic(ctx context.Context, options ...admin.OptionCreate) error
	DeleteTopic(ctx context.Context, options ...admin.OptionDelete) error
	FetchAllTopicList(ctx context.Context) (*admin.TopicList, error)
	GetAllSubscriptionGroup(
		ctx context.Context, broker string, within time.Duration,
	) (*admin.SubscriptionGroupWrapper, error)
	FetchPublishMessageQueues(ctx context.Context, topic string) ([]*primitive.MessageQueue, error)
}

var questions = map[string]func(asker, adminWanted) (interface{}, error){
	"create_topic": createTopic,
	"delete_topic": deleteTopic,
	"topics":       topics,
	"groups":       groups,
	"queues":       queues,
}

func askAdmin(line []byte) (interface{}, error) {
	wanted := adminWanted{Queues: 4}
	if err := json.Unmarshal(line, &wanted); err != nil {
		return nil, err
	}
	question, known := questions[wanted.What]
	if !known {
		return nil, fmt.Errorf("no such question: %s", wanted.What)
	}
	made, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{wanted.Namesrv})))
	if err != nil {
		return nil, err
	}
	return question(made, wanted)
}

func createTopic(made asker, wanted adminWanted) (interface{}, error) {
	return true, made.CreateTopic(context.Background(),
		admin.WithTopicCreate(wanted.Topic),
		admin.WithBrokerAddrCreate(wanted.Broker),
		admin.WithReadQueueNums(wanted.Queues),
		admin.WithWriteQueueNums(wanted.Queues),
	)
}

func deleteTopic(made asker, wanted adminWanted) (interface{}, error) {
	return true, made.DeleteTopic(context.Background(),
		admin.WithTopicDelete(wanted.Topic),
		admin.WithBrokerAddrDelete(wanted.Broker),
	)
}

func topics(made asker, _ adminWanted) (interface{}, error) {
	list, err := made.FetchAllTopicList(context.Background())
	if err != nil {
		return nil, err
	}
	return list.TopicList, nil
}

// groups tells the most often a group's message comes back, by the group's name.
func groups(made asker, wanted adminWanted) (interface{}, error) {
	found, err := made.GetAllSubscriptionGroup(context.Background(), wanted.Broker, answerWithin)
	if err != nil {
		return nil, err
	}
	table := map[string]int{}
	for name, group := range found.SubscriptionGroupTable {
		table[name] = group.RetryMaxTimes
	}
	return table, nil
}

func queues(made asker, wanted adminWanted) (interface{}, error) {
	found, err := made.FetchPublishMessageQueues(context.Background(), wanted.Topic)
	if err != nil {
		return nil, err
	}
	ids := []int{}
	for _, queue := range found {
		ids = append(ids, queue.QueueId)
	}
	return ids, nil
}
