package changes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// Kind names a change of an intent, such as "waiting". It is the last token of
// the change's subject.
type Kind string

// The changes: a closed set.
const (
	// Submitted: it is accepted.
	Submitted Kind = "submitted"
	// Planned: its tasks, or its child intents, are known.
	Planned Kind = "planned"
	// Waiting: a person has to act; data.waiting says how.
	Waiting Kind = "waiting"
	// Approved: a person approved its plan.
	Approved Kind = "approved"
	// Resumed: it goes on after an answer, a retry, or another thing that it
	// waited for.
	Resumed Kind = "resumed"
	// Executing: work on its tasks begins.
	Executing Kind = "executing"
	// Iterated: an iteration towards a goal is over, and another one begins;
	// see data.goal.
	Iterated Kind = "iterated"
	// ChangesRequested: a review rejected the change of data.task, see data.review;
	// it is made again, or a person is asked. Or a person asks for changes, see data.words:
	// of data.task, or, where there is none, of the plan or of several.
	ChangesRequested Kind = "changes-requested"
	// ChecksFailed: a verify command failed on the change of data.task, see
	// data.verify.
	ChecksFailed Kind = "checks-failed"
	// Commented: there are comments on it, at a forge or wherever else it is talked about; see
	// data.comments. Nothing of what is done changes.
	Commented Kind = "commented"
	// KindTaskDone: the change of data.task is on the base branch.
	KindTaskDone Kind = "task-done"
	// KindTaskFailed: data.task is given up.
	KindTaskFailed Kind = "task-failed"
	// Done: all of it is done.
	Done Kind = "done"
	// Blocked: a part of it, or an intent that it depends on, failed.
	Blocked Kind = "blocked"
	// Error: all of it failed.
	Error Kind = "error"
	// Rejected: a person refused it.
	Rejected Kind = "rejected"
	// Cancelled: a person stopped it.
	Cancelled Kind = "cancelled"
)

// Kinds lists the changes, in the order in which an intent may go through them.
func Kinds() []Kind {
	return []Kind{
		Submitted, Planned, Waiting, Approved, Resumed, Executing, Iterated, ChangesRequested, ChecksFailed, Commented, KindTaskDone, KindTaskFailed,
		Done, Blocked, Error, Rejected, Cancelled,
	}
}

// headerPosition is the header that says which change of which record a message
// is: <journal sequence>/<index>. That of the last message is how far the
// publishing has come.
const headerPosition = "Forge-Position"

// change is a change that is not published yet.
type change struct {
	what Kind
	// task is the task that it is about; nil for changes of the whole intent.
	task *document.TaskState
	// cause says by whom or by which fact it came about.
	cause document.Cause
}

// changes returns the changes between two decisions on an intent, given the
// summaries after each; before is nil for the first decision. It depends on
// nothing else, so that every runner finds the same ones.
func changes(before, now *forge.Summary) (list []change) {
	add := func(is bool, what Kind) {
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
	add(first, Submitted)
	// An approval may be of a text, before there is any plan: then nothing is planned yet,
	// although the summary names a hash. Followers get a change that it waits, with 0 tasks.
	planned := now.TaskCount+len(now.Children) > 0 // else the plan's hash may name the text that is to be analyzed
	add(planned && (before.TaskCount+len(before.Children) == 0 || now.Status == forge.StatusProposed && now.Plan != before.Plan), Planned)
	add(before.Waiting == forge.WaitingApproval && now.Waiting != forge.WaitingApproval && !ended, Approved)
	add(before.Waiting != "" && before.Waiting != forge.WaitingApproval && now.Waiting == "" && !ended, Resumed)
	add(now.Status == forge.StatusExecuting && before.Status != forge.StatusExecuting, Executing)
	add(iterated(before.Goal, now.Goal), Iterated)
	add(now.Comments != nil && (before.Comments == nil || before.Comments.Ref != now.Comments.Ref), Commented)
	list = append(list, taskChanges(before, now)...)
	add(waits && (now.Waiting != before.Waiting || now.Plan != before.Plan), Waiting)
	add(ended && (now.Status != before.Status || now.Run != before.Run), Kind(now.Status))
	return list
}

// iterated reports whether another iteration of a goal follows one that has ended.
func iterated(before, now *forge.GoalSummary) bool {
	return before != nil && now != nil && before.Iteration > 0 && now.Iteration > before.Iteration
}

// taskChanges compares the tasks under way. A task that is done leaves the
// summary and is counted there; one that fails stays.
func taskChanges(before, now *forge.Summary) (list []change) {
	done := now.TasksDone - before.TasksDone
	for _, t := range before.Tasks {
		gone := !slices.ContainsFunc(now.Tasks, func(n forge.TaskSummary) bool { return n.ID == t.ID })
		if gone && done > 0 && t.Status != forge.TaskFailed {
			done--
			list = append(list, change{what: KindTaskDone, task: &document.TaskState{ID: t.ID, Title: document.Cut(t.Title), Status: forge.TaskDone}})
		}
	}
	for _, t := range now.Tasks {
		known := slices.ContainsFunc(before.Tasks, func(b forge.TaskSummary) bool { return b.ID == t.ID && b.Status == forge.TaskFailed })
		if t.Status == forge.TaskFailed && !known {
			list = append(list, change{what: KindTaskFailed, task: &document.TaskState{
				ID: t.ID, Title: document.Cut(t.Title), Status: t.Status, Detail: document.Cut(t.Detail),
			}})
		}
	}
	return list
}

// position is how far the publishing has come. Every change has one.
type position struct {
	// seq is the sequence of a record in the journal.
	seq uint64
	// index counts the changes of that record from 0.
	index int
}

// parsePosition is the inverse of String. It accepts nothing that String would
// not return.
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

// message returns a change as it is published. It is the same, byte for byte,
// for every runner.
func (c *change) message(at position, now *forge.Summary, origin document.Origin) (*nats.Msg, error) {
	subject, err := subjects.Change(now.Key, string(c.what))
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%s/%s/%s-%s", now.Key.Project, now.Key.Intent, at, c.what)
	body, err := json.Marshal(CloudEvent[document.Change]{
		SpecVersion: CloudEventsVersion, ID: id, Source: "/pfl-forge/" + string(now.Key.Project), Type: fmt.Sprintf(publishedType, c.what),
		Subject: string(now.Key.Intent), Time: now.UpdatedAt.UTC(), ContentType: wire.TypeJSON,
		Data: document.Change{State: document.StateOf(now), Origin: origin, Task: c.task, Cause: c.cause},
	})
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	m.Header.Set(wire.HeaderContentType, wire.TypeCloudEvents)
	m.Header.Set(headerPosition, at.String())
	return m, nil
}
