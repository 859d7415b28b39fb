// Command testpod runs in pods of the tests on a cluster: as a git server, as a system that
// asks for changes, and to try which addresses can be reached. It is one static binary, so
// that its image needs no base.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/signed"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testpod:", err)
		os.Exit(1)
	}
}

// errUsage names the commands and their arguments; a mistake in a manifest shows it in the pod's
// log.
var errUsage = errors.New("usage: testpod install DIR | git DIR | submit PROJECT PREFIX FIRST COUNT [RECIPE] | " +
	"ask PROJECT TITLE | dial reached|blocked HOST:PORT... | model HOLD HOST:PORT... | get URL | collect | wait | " +
	"request GATEWAY PROJECT PREFIX COUNT | deliver URL | stand HOST:PORT [HOST:PORT]")

// commands lists the commands by name; least and most bound the number of their arguments.
var commands = map[string]struct {
	least, most int
	do          func(args []string, out io.Writer) error
}{
	"install": {1, 1, func(args []string, _ io.Writer) error { return install(args[0]) }},
	"git":     {1, 1, func(args []string, _ io.Writer) error { return serveGit(args[0]) }},
	"submit":  {4, 5, submit},
	"ask":     {2, 2, func(args []string, out io.Writer) error { return ask(args[0], args[1], out) }},
	"request": {4, 4, func(args []string, out io.Writer) error { return request(args[0], args[1], args[2], args[3], out) }},
	"deliver": {1, 1, func(args []string, out io.Writer) error { return deliver(args[0], out) }},
	"model":   {1, math.MaxInt, func(args []string, _ io.Writer) error { return serveModel(args[0], args[1:]) }},
	"dial":    {1, math.MaxInt, dial},
	"stand":   {1, 2, func(args []string, _ io.Writer) error { return stand(args) }},
	"get":     {1, 1, func(args []string, out io.Writer) error { return get(args[0], out) }},
	"collect": {0, 0, func([]string, io.Writer) error { return collect() }},
	"wait":    {0, 0, func([]string, io.Writer) error { select {} }},
}

// run executes the command that the arguments name. A server runs until its pod is deleted.
func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	c, ok := commands[args[0]]
	if args = args[1:]; !ok || len(args) < c.least || len(args) > c.most {
		return errUsage
	}
	return c.do(args, out)
}

// install copies this program to where a container of another image can run it.
func install(dir string) error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "testpod"), self, 0o755)
}

// submit asks for changes, as a system that knows NATS and nothing of pfl-forge, by the recipe
// write unless another one is given. It says when all are stored. Doing it again asks for the same
// ones. The system's name is in SYSTEM and in the subject; the server lets it publish there alone.
func submit(args []string, out io.Writer) error {
	project, prefix, recipe := args[0], args[1], "write"
	if len(args) > 4 {
		recipe = args[4]
	}
	from, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	js, end, err := connect()
	if err != nil {
		return err
	}
	defer end()
	name := os.Getenv("SYSTEM")
	for i := from; i < from+n; i++ {
		id := fmt.Sprintf("%s-%03d", prefix, i)
		data, err := json.Marshal(map[string]any{
			"title": "Write " + id, "body": "Please.", "type": "feature", "risk": "low", "recipe": recipe, "with": map[string]string{"NAME": id},
			"origin": map[string]string{"system": name, "event_id": id},
		})
		if err != nil {
			return err
		}
		if err := publish(js, "forge.intent."+project+".from."+name+".submit", data); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	fmt.Fprintf(out, "stored %d\n", n)
	return nil
}

// ask asks for one change that an agent has to make. It names no recipe, so the project's agent
// makes it. The title is the event's id: asked again, it is the same intent.
func ask(project, title string, out io.Writer) error {
	js, end, err := connect()
	if err != nil {
		return err
	}
	defer end()
	name := os.Getenv("SYSTEM")
	data, err := json.Marshal(map[string]any{
		"title": title, "body": "Please.", "type": "feature", "risk": "low", "origin": map[string]string{"system": name, "event_id": title},
	})
	if err != nil {
		return err
	}
	if err := publish(js, "forge.intent."+project+".from."+name+".submit", data); err != nil {
		return err
	}
	fmt.Fprintln(out, "stored 1")
	return nil
}

// get prints the answer of a server, which is shown TOKEN if there is one.
func get(url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // the test says what is asked
	if err != nil {
		return err
	}
	if token := os.Getenv("TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request) //nolint:gosec // likewise
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(out, response.Body)
	return err
}

// connect connects with the key of the system.
func connect() (js jetstream.JetStream, end func(), err error) {
	seed, err := nats.NkeyOptionFromSeed("/etc/forge/nats/nkey")
	if err != nil {
		return nil, nil, err
	}
	name := os.Getenv("SYSTEM")
	nc, err := nats.Connect(os.Getenv("FORGE_SERVER"), seed, nats.RootCAs("/etc/forge/nats/ca.crt"), nats.CustomInboxPrefix("_INBOX_"+name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second))
	if err != nil {
		return nil, nil, err
	}
	if js, err = jetstream.New(nc); err != nil {
		nc.Close()
		return nil, nil, err
	}
	return js, nc.Close, nil
}

// publish stores a message, signed by the key of the system, however long the server is away. It
// gives up after some sixty tries of three seconds each, with the last error.
func publish(js jetstream.JetStream, subject string, data []byte) error {
	key, err := bus.SigningKey("/etc/forge/nats/nkey", os.Getenv("SYSTEM"))()
	if err != nil {
		return err
	}
	var failed error
	for range 60 {
		proof, err := signed.Sign(key, &signed.Message{Subject: subject, Payload: data}, time.Now())
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		_, err = js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data, Header: nats.Header{signed.Header: {proof.String()}}})
		if err != nil {
			<-ctx.Done() // before the first connection each try fails at once
		}
		cancel()
		if err == nil {
			return nil
		}
		failed = err
	}
	return failed
}

// dial says of each address whether a connection is made within two seconds, and tries
// again while that is not what the word before the addresses says: policies are put into
// force some moments after a pod has begun.
func dial(args []string, out io.Writer) error {
	want, said := "", make([]string, len(args))
	var all sync.WaitGroup
	for i, arg := range args {
		if arg == reached || arg == blocked {
			want = arg
			continue
		}
		wanted := want
		all.Go(func() { said[i] = awaitAnswer(arg, wanted) })
	}
	all.Wait()
	for i, arg := range args {
		if said[i] != "" {
			fmt.Fprintln(out, arg, said[i])
		}
	}
	return nil
}

const (
	reached = "reached"
	blocked = "blocked"
)

// awaitAnswer returns how an address answers: the wanted answer as soon as it comes, and after ten
// seconds any other. A policy may be in force late in both directions, so neither answer is
// believed at once.
func awaitAnswer(address, want string) (said string) {
	for range 20 {
		if said = try(address); said == want {
			break
		}
		<-time.After(500 * time.Millisecond)
	}
	return said
}

// try returns how an address answers now. A connection that is refused has passed every
// policy: it is told apart from one that is blocked.
func try(address string) string {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	conn, err := dialer.DialContext(context.Background(), "tcp", address)
	switch {
	case err == nil:
		_ = conn.Close()
		return reached
	case strings.Contains(err.Error(), "refused"):
		return "refused"
	}
	return blocked
}
