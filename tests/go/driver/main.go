// Command driver is an Apache RocketMQ client that a test drives: commands in, one JSON object a line; answers and
// events out.
//
// A command is {"id":1,"do":"send",…}. Its answer is {"id":1,"ok":true,"value":…} or {"id":1,"ok":false,"error":…}.
// What a listener gets is {"event":"consumed",…} (see consumers.go). Commands run side by side. The end of standard
// input ends the process, so no test leaves one behind.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// lineBytesMax bounds one command.
const lineBytesMax = 16 << 20

type fields = map[string]interface{}

// command is one line; each verb reads the rest of it into a struct of its own.
type command struct {
	ID int    `json:"id"`
	Do string `json:"do"`
}

// verbs: what a command may ask for.
var verbs = map[string]func(line []byte) (interface{}, error){
	"producer": startProducer,
	"send":     send,
	"consumer": startConsumer,
	"pull":     pull,
	"stop":     stop,
	"admin":    askAdmin,
}

var output sync.Mutex

func main() {
	// The client reads the answer of an asynchronous send that had none within 3 s, which would end the process and
	// with it the clients of all other tests. The sender gets its error all the same.
	primitive.PanicHandler = func(fault interface{}) { fmt.Fprintln(os.Stderr, "the client panicked:", fault) }
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		line := append([]byte(nil), lines.Bytes()...)
		go answer(line)
	}
	// No orderly farewell: a test that wants one says "stop" first.
	os.Exit(0)
}

func answer(line []byte) {
	var asked command
	value, err := run(line, &asked)
	if err != nil {
		show(fields{"id": asked.ID, "ok": false, "error": err.Error()})
		return
	}
	show(fields{"id": asked.ID, "ok": true, "value": value})
}

func run(line []byte, asked *command) (value interface{}, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	if err := json.Unmarshal(line, asked); err != nil {
		return nil, err
	}
	verb, known := verbs[asked.Do]
	if !known {
		return nil, fmt.Errorf("no such command: %s", asked.Do)
	}
	return verb(line)
}

func show(line fields) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

// parts are the producers and consumers that live, by name.
var parts = struct {
	sync.Mutex
	byName map[string]interface{}
}{byName: map[string]interface{}{}}

func keep(name string, part interface{}) {
	parts.Lock()
	defer parts.Unlock()
	parts.byName[name] = part
}

func find(name string) (interface{}, error) {
	parts.Lock()
	defer parts.Unlock()
	part, known := parts.byName[name]
	if !known {
		return nil, fmt.Errorf("nothing is called %s", name)
	}
	return part, nil
}

// stop is the client's own orderly shutdown.
func stop(line []byte) (interface{}, error) {
	var asked struct{ Name string }
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, err
	}
	part, err := find(asked.Name)
	if err != nil {
		return nil, err
	}
	parts.Lock()
	delete(parts.byName, asked.Name)
	parts.Unlock()
	return true, part.(interface{ Shutdown() error }).Shutdown()
}
