package e2e

import (
	"bufio"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// line is what a service logged, by its keys.
type line map[string]any

// text returns the value of a key, empty if it is not there or no text.
func (l line) text(key string) string {
	s, _ := l[key].(string)
	return s
}

// duty matches the subjects of commands, of their results and of leases.
var duty = regexp.MustCompile(`forge\.(command|result|lease)\.`)

// lines returns what the services have logged, by replica.
func (c *cluster) lines() map[string][]line {
	c.t.Helper()
	all := map[string][]line{}
	for _, p := range c.procs[1:] { // the first one is the nats-server
		scan := bufio.NewScanner(strings.NewReader(c.log(p)))
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			var l line
			if err := json.Unmarshal(scan.Bytes(), &l); err != nil || l.text("service") == "" || l.text("replica") == "" {
				c.t.Errorf("%s logs %q: %v", p.name, scan.Text(), err)
				continue
			}
			all[l.text("replica")] = append(all[l.text("replica")], l)
		}
		if err := scan.Err(); err != nil {
			c.t.Fatal(err)
		}
	}
	return all
}

// checkLines checks that whatever a service logs about an intent says which, that what is about
// a command has the intent, the task and the attempt, and between the start and the end of an
// attempt the id of its trace too; and that nothing is an error that mended itself. It returns
// how many lines there were about commands.
func (c *cluster) checkLines(intents ...string) (about int) {
	c.t.Helper()
	for replica, list := range c.lines() {
		running := map[string]bool{}
		for _, l := range list {
			text, err := json.Marshal(l)
			if err != nil {
				c.t.Fatal(err)
			}
			if l.text("level") == "ERROR" {
				c.t.Errorf("%s logs an error: %s", replica, text)
			}
			mentioned := func(id string) bool { return strings.Contains(string(text), id) }
			if slices.ContainsFunc(intents, mentioned) && !slices.Contains(intents, strings.TrimPrefix(l.text("intent"), project+"/")) {
				c.t.Errorf("%s does not say which intent: %s", replica, text)
			}
			_, task := l["task"]
			attempt := l.text("attempt")
			if task || attempt != "" || l["command"] != nil || duty.Match(text) {
				about++
				if !task || attempt == "" || !strings.HasPrefix(l.text("intent"), project+"/") {
					c.t.Errorf("%s does not say which command: %s", replica, text)
				}
			}
			if l.text("msg") == "start" && attempt != "" {
				running[attempt] = true
			}
			if running[attempt] && l.text("trace_id") == "" {
				c.t.Errorf("%s does not say which trace: %s", replica, text)
			}
			if l.text("msg") == "end" {
				delete(running, attempt)
			}
		}
	}
	return about
}
