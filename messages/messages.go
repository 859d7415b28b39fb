// Package messages is the registry of all messages: who sends each, who decides
// on it, and by which verb people send it.
//
// The codec, the subjects' verbs, the permissions, AsyncAPI and the table in ARCHITECTURE.md
// follow All: a new message is a struct in package forge, its .proto and a row here (ADR
// 0030). A verb is part of subjects and of the API's addresses, and is never renamed.
package messages

import forge "github.com/pfl-forge/pfl-forge"

// Party is a sender or receiver of messages.
type Party int

// The parties.
const (
	// PartyPerson is a person, or another system where systems may send the message.
	PartyPerson Party = iota
	// PartyWorker is one of the services that carry out commands.
	PartyWorker
	// PartyTimer is the runner, when a timer is due.
	PartyTimer
	// PartyIntent is the state machine of an intent.
	PartyIntent
	// PartyProject is the state machine of a project.
	PartyProject
)

func (p Party) String() string {
	return [...]string{"person", "worker", "timer", "intent", "project"}[p]
}

// Spec describes one type of message.
type Spec struct {
	// Message is a value of the type, with zero fields.
	Message forge.Message
	// From is the sender.
	From Party
	// To is the receiver, which decides on it. Cancel, Pause and Resume can also be sent to a
	// project, and are then about all of its intents.
	To Party
	// Verb is the last token of the subject on which people send it; empty if it
	// is not theirs to send.
	Verb string
	// Once says which field tells a repetition of the message from a new one.
	Once string
	// About is one sentence for the reader of a journal.
	About string
}

// All lists every type of message. The wire format, the verbs of subjects
// and the table in the documentation follow it.
func All() []Spec {
	return []Spec{
		// What people and systems ask for and decide.
		{&forge.Submit{}, PartyPerson, PartyIntent, "submit", "the intent's id and origin", "asks for an intent"},
		{&forge.Edit{}, PartyPerson, PartyIntent, "edit", "Event.ID", "changes fields of an intent that has not begun"},
		{&forge.Approve{}, PartyPerson, PartyIntent, "approve", "Event.ID", "lets an intent that waits for approval continue"},
		{&forge.RequestChanges{}, PartyPerson, PartyIntent, "request_changes", "Event.ID", "has a plan or a change that waits for approval made again"},
		{&forge.Reject{}, PartyPerson, PartyIntent, "reject", "Event.ID", "ends an intent that waits for a person"},
		{&forge.Answer{}, PartyPerson, PartyIntent, "answer", "Event.ID", "answers a question"},
		{&forge.Retry{}, PartyPerson, PartyIntent, "retry", "Event.ID", "runs what failed or waits again"},
		{&forge.Cancel{}, PartyPerson, PartyIntent, "cancel", "Event.ID", "stops an intent or one task of it"},
		{&forge.Pause{}, PartyPerson, PartyIntent, "pause", "Event.ID, or Number", "stops agents and keeps their work"},
		{&forge.Resume{}, PartyPerson, PartyIntent, "resume", "Event.ID, or Number", "continues what was paused"},
		{&forge.Reflect{}, PartyPerson, PartyProject, "reflect", "Event.ID", "asks for a reflection now"},
		{&forge.Teach{}, PartyPerson, PartyProject, "teach", "Event.ID", "adds, corrects or forgets a piece of knowledge"},
		{&forge.SetSchedules{}, PartyPerson, PartyProject, "set_schedules", "Event.ID", "replaces the schedules of the project"},
		{&forge.PauseSchedule{}, PartyPerson, PartyProject, "pause_schedule", "Event.ID", "pauses or resumes a schedule"},

		// What workers report, and what timers say.
		{&forge.Result{}, PartyWorker, PartyIntent, "", "Attempt", "reports what an attempt found; of a step of the project (`Step.OfProject`) to the project"},
		{&forge.TimerFired{}, PartyTimer, PartyIntent, "", "Key and At", "says that the time of a timer has come"},

		// Runs: their admission, plans, dependencies and ends.
		{&forge.AdmitRun{}, PartyIntent, PartyProject, "", "Run", "asks the project to admit a run"},
		{&forge.RunAdmitted{}, PartyProject, PartyIntent, "", "Run", "lets a run begin, and describes the others"},
		{&forge.RunPlanned{}, PartyIntent, PartyProject, "", "Run", "describes the plan and its dependencies"},
		{&forge.DependencyEnded{}, PartyProject, PartyIntent, "", "Run and Intent", "says how an intent ended that this one waits for"},
		{&forge.ChildChanged{}, PartyProject, PartyIntent, "", "Intent, Run and Number", "says that a child intent began or ended"},
		{&forge.RunEnded{}, PartyIntent, PartyProject, "", "Run and Number", "says that a run ended"},

		// The merge queue: file locks, merges, and what is taken back. What becomes
		// of a pull request is a result of a worker, however often it changes.
		{&forge.LockFiles{}, PartyIntent, PartyProject, "", "Task and Number", "asks for the lock on files after a conflict"},
		{&forge.FilesLocked{}, PartyProject, PartyIntent, "", "Task and Number", "answers the request for a file lock"},
		{&forge.QueueMerge{}, PartyIntent, PartyProject, "", "Task and Number", "puts one verified and reviewed commit into the merge queue"},
		{&forge.MergeEnded{}, PartyProject, PartyIntent, "", "Task and Number", "says what became of the merge"},
		{&forge.WithdrawRequests{}, PartyIntent, PartyProject, "", "Task and Number", "takes back a task's requests to the project"},

		// Money: an intent asks before a call, and tells what it cost.
		{&forge.ReserveBudget{}, PartyIntent, PartyProject, "", "Attempt and Number", "asks to reserve money for a call"},
		{&forge.BudgetReserved{}, PartyProject, PartyIntent, "", "Attempt", "grants or denies money for a call"},
		{&forge.CommitBudget{}, PartyIntent, PartyProject, "", "Number", "commits what was spent and releases the rest"},

		// Obstacles: what stops all intents of a project.
		{&forge.ObstacleReported{}, PartyIntent, PartyProject, "", "Number", "says that an account, the origin or a red base holds a step up, or no longer does"},
		{&forge.ObstaclesChanged{}, PartyProject, PartyIntent, "", "Number", "says which obstacles there are"},

		// What is told between a run and its reflection, and between two runs.
		{&forge.RunReflected{}, PartyProject, PartyIntent, "", "Step.Attempt", "says what a reflection made of a run"},
		{&forge.OverlapChanged{}, PartyIntent, PartyIntent, "", "Number", "says that two tasks under way do not merge, or do again"},
	}
}
