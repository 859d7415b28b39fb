package bus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// ChangeKind names a change of an intent that followers are told of. It is the last token
// of the change's subject.
type ChangeKind string

// The changes: a closed set.
const (
	ChangeSubmitted  ChangeKind = "submitted"   // it is accepted
	ChangePlanned    ChangeKind = "planned"     // it is known what is to be done
	ChangeWaiting    ChangeKind = "waiting"     // a person has to do something: see data.waiting
	ChangeApproved   ChangeKind = "approved"    // a person approved it
	ChangeResumed    ChangeKind = "resumed"     // it goes on after an answer, a retry, or whatever else it waited for
	ChangeExecuting  ChangeKind = "executing"   // work on its tasks begins
	ChangeIterated   ChangeKind = "iterated"    // an iteration towards a goal is over, and another one begins: see data.goal
	ChangeTaskDone   ChangeKind = "task-done"   // the change of data.task is on the base branch
	ChangeTaskFailed ChangeKind = "task-failed" // data.task is given up
	ChangeDone       ChangeKind = "done"        // all of it is done
	ChangeBlocked    ChangeKind = "blocked"     // a part of it, or what it depends on, failed
	ChangeError      ChangeKind = "error"       // all of it failed
	ChangeRejected   ChangeKind = "rejected"    // a person refused it
	ChangeCancelled  ChangeKind = "cancelled"   // a person stopped it
)

// ChangeKinds lists the changes.
func ChangeKinds() []ChangeKind {
	return []ChangeKind{
		ChangeSubmitted, ChangePlanned, ChangeWaiting, ChangeApproved, ChangeResumed, ChangeExecuting, ChangeIterated, ChangeTaskDone, ChangeTaskFailed,
		ChangeDone, ChangeBlocked, ChangeError, ChangeRejected, ChangeCancelled,
	}
}

const (
	streamEvents = "FORGE_EVENTS"
	// keepEvents is how long a follower may be away.
	keepEvents = 30 * day
	// maxEvents bounds them, in bytes, where an operator has not chosen another bound: some
	// 60,000 changes.
	maxEvents = 64 << 20
	// headerPosition says which change of which record a message tells:
	// <journal sequence>/<index>. The last message's is how far the publishing has come.
	headerPosition = "Forge-Position"
)

// publications declares the stream of changes. A single server does not wait for the
// disk there: what a power cut takes is published again, because the stream itself says
// how far it has come.
func publications(replicas int) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name:        streamEvents,
		Description: "changes of intents, as CloudEvents, for everybody to follow; made from the journals",
		Subjects:    []string{"forge.event.*.*.*"},
		MaxAge:      keepEvents,
		MaxBytes:    maxEvents, // the oldest goes first
		DenyDelete:  true,
		DenyPurge:   true,
	}
	if replicas <= 1 {
		cfg.PersistMode = jetstream.AsyncPersistMode
	}
	return cfg
}

// change is a Change that is not told yet.
type change struct {
	what ChangeKind
	task *document.TaskState
}

// changes returns what happened between two decisions on an intent. There is none
// before the first.
func changes(before, now *forge.Summary) (list []change) {
	add := func(is bool, what ChangeKind) {
		if is {
			list = append(list, change{what: what})
		}
	}
	first := before == nil
	if first {
		before = &forge.Summary{}
	}
	ended := now.Status.Ended()
	waits := now.Waiting != "" && now.Waiting != forge.WaitingFailed
	add(first, ChangeSubmitted)
	add(before.TaskCount+len(before.Children) == 0 && now.TaskCount+len(now.Children) > 0 ||
		now.Status == forge.StatusProposed && now.Plan != "" && now.Plan != before.Plan, ChangePlanned)
	add(before.Waiting == forge.WaitingApproval && now.Waiting != forge.WaitingApproval && !ended, ChangeApproved)
	add(before.Waiting != "" && before.Waiting != forge.WaitingApproval && now.Waiting == "" && !ended, ChangeResumed)
	add(now.Status == forge.StatusExecuting && before.Status != forge.StatusExecuting, ChangeExecuting)
	add(iterated(before.Goal, now.Goal), ChangeIterated)
	list = append(list, taskChanges(before, now)...)
	add(waits && (now.Waiting != before.Waiting || now.Plan != before.Plan), ChangeWaiting)
	add(ended && (now.Status != before.Status || now.Run != before.Run), ChangeKind(now.Status))
	return list
}

// iterated reports whether another iteration of a goal follows one that has ended.
func iterated(before, now *forge.GoalSummary) bool {
	return before != nil && now != nil && before.Iteration > 0 && now.Iteration > before.Iteration
}

// taskChanges compares the tasks under way: one that is done is only counted.
func taskChanges(before, now *forge.Summary) (list []change) {
	done := now.TasksDone - before.TasksDone
	for _, t := range before.Tasks {
		gone := !slices.ContainsFunc(now.Tasks, func(n forge.TaskSummary) bool { return n.ID == t.ID })
		if gone && done > 0 && t.Status != forge.TaskFailed {
			done--
			list = append(list, change{ChangeTaskDone, &document.TaskState{ID: t.ID, Title: document.Cut(t.Title), Status: forge.TaskDone}})
		}
	}
	for _, t := range now.Tasks {
		known := slices.ContainsFunc(before.Tasks, func(b forge.TaskSummary) bool { return b.ID == t.ID && b.Status == forge.TaskFailed })
		if t.Status == forge.TaskFailed && !known {
			list = append(list, change{ChangeTaskFailed, &document.TaskState{ID: t.ID, Title: document.Cut(t.Title), Status: t.Status, Detail: document.Cut(t.Detail)}})
		}
	}
	return list
}

// position is how far the publishing has come.
type position struct {
	seq   uint64 // of a record
	index int    // of a change in it
}

func parsePosition(s string) (p position, err error) {
	var n int
	n, err = fmt.Sscanf(s, "%d/%d", &p.seq, &p.index)
	if err != nil || n != 2 || p.String() != s {
		return p, fmt.Errorf("%q is no position", s)
	}
	return p, nil
}

func (p position) String() string {
	return strconv.FormatUint(p.seq, 10) + "/" + strconv.Itoa(p.index)
}

// message returns a change as it is published. It is the same for every runner.
func (c change) message(at position, now *forge.Summary, origin document.Origin) (*nats.Msg, error) {
	subject, err := publishedSubject(now.Key, c.what)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s/%s/%s-%s", now.Key.Project, now.Key.Intent, at, c.what)
	body, err := json.Marshal(cloudEvent[document.Change]{
		SpecVersion: cloudEventsVersion, ID: id, Source: "/pfl-forge/" + string(now.Key.Project), Type: fmt.Sprintf(publishedType, c.what),
		Subject: string(now.Key.Intent), Time: now.UpdatedAt.UTC(), ContentType: typeJSON,
		Data: document.Change{State: document.StateOf(now), Origin: origin, Task: c.task},
	})
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	m.Header.Set(headerContentType, typeCloudEvents)
	m.Header.Set(headerPosition, at.String())
	return m, nil
}
