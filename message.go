package forge

// Message says what happened, as one of the types that Messages lists. The
// interface is sealed: a switch over its types that misses one does not pass
// the linter.
//
//sumtype:decl
type Message interface{ isMessage() }

// Party is a sender or receiver of messages.
type Party int

// The parties.
const (
	PartyPerson  Party = iota // is a person, or another system where systems may send the message
	PartyWorker               // is one of the services that carry out commands
	PartyTimer                // is the runner, when a timer is due
	PartyIntent               // is the state machine of an intent
	PartyProject              // is the state machine of a project
)

func (p Party) String() string {
	return [...]string{"person", "worker", "timer", "intent", "project"}[p]
}

// MessageSpec describes one type of message.
type MessageSpec struct {
	// Message is a value of the type, with zero fields.
	Message Message
	// From is who sends it.
	From Party
	// To is who decides on it. Cancel, Pause and Resume can also be sent to a
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

// Messages lists every type of message. The wire format, the verbs of subjects
// and the table in the documentation follow it.
func Messages() []MessageSpec {
	return []MessageSpec{
		{&Submit{}, PartyPerson, PartyIntent, "submit", "the intent's id and origin", "asks for an intent"},
		{&Edit{}, PartyPerson, PartyIntent, "edit", "Event.ID", "changes fields of an intent that has not begun"},
		{&Approve{}, PartyPerson, PartyIntent, "approve", "Event.ID", "lets an intent that waits for approval continue"},
		{&Reject{}, PartyPerson, PartyIntent, "reject", "Event.ID", "ends an intent that waits for a person"},
		{&Answer{}, PartyPerson, PartyIntent, "answer", "Event.ID", "answers a question"},
		{&Retry{}, PartyPerson, PartyIntent, "retry", "Event.ID", "runs what failed or waits again"},
		{&Cancel{}, PartyPerson, PartyIntent, "cancel", "Event.ID", "stops an intent or one task of it"},
		{&Pause{}, PartyPerson, PartyIntent, "pause", "Event.ID, or Number", "stops agents and keeps their work"},
		{&Resume{}, PartyPerson, PartyIntent, "resume", "Event.ID, or Number", "continues what was paused"},
		{&Reflect{}, PartyPerson, PartyProject, "reflect", "Event.ID", "asks for a reflection now"},
		{&Teach{}, PartyPerson, PartyProject, "teach", "Event.ID", "adds, corrects or forgets a piece of knowledge"},

		{&Result{}, PartyWorker, PartyIntent, "", "Attempt", "reports what an attempt found; merges, reflections and probes are reported to the project"},
		{&TimerFired{}, PartyTimer, PartyIntent, "", "Key and At", "says that the time of a timer has come"},

		{&AdmitRun{}, PartyIntent, PartyProject, "", "Run", "asks the project to admit a run"},
		{&RunAdmitted{}, PartyProject, PartyIntent, "", "Run", "lets a run begin, and describes the others"},
		{&RunPlanned{}, PartyIntent, PartyProject, "", "Run", "describes the plan and its dependencies"},
		{&DependencyEnded{}, PartyProject, PartyIntent, "", "Run and Intent", "says how an intent ended that this one waits for"},
		{&ChildChanged{}, PartyProject, PartyIntent, "", "Intent, Run and Number", "says that a child intent began or ended"},
		{&RunEnded{}, PartyIntent, PartyProject, "", "Run and Number", "says that a run ended"},

		{&LockFiles{}, PartyIntent, PartyProject, "", "Task and Number", "asks for the lock on files after a conflict"},
		{&FilesLocked{}, PartyProject, PartyIntent, "", "Task and Number", "answers the request for a file lock"},
		{&QueueMerge{}, PartyIntent, PartyProject, "", "Task and Number", "puts one verified and reviewed commit into the merge queue"},
		{&MergeEnded{}, PartyProject, PartyIntent, "", "Task and Number", "says what became of the merge"},
		{&WithdrawRequests{}, PartyIntent, PartyProject, "", "Task and Number", "takes back a task's requests to the project"},

		{&ReserveBudget{}, PartyIntent, PartyProject, "", "Attempt and Number", "asks to reserve money for a call"},
		{&BudgetReserved{}, PartyProject, PartyIntent, "", "Attempt", "grants or denies money for a call"},
		{&CommitBudget{}, PartyIntent, PartyProject, "", "Number", "commits what was spent and releases the rest"},

		{&AccountRefused{}, PartyIntent, PartyProject, "", "Number", "says that the account of an agent refused a call"},
		{&AccountsChanged{}, PartyProject, PartyIntent, "", "Number", "says which accounts refuse calls"},

		{&RunReflected{}, PartyProject, PartyIntent, "", "Step.Attempt", "says what a reflection made of a run"},
		{&OverlapChanged{}, PartyIntent, PartyIntent, "", "Number", "says that two tasks under way do not merge, or do again"},
	}
}

func (*Submit) isMessage()           {}
func (*Edit) isMessage()             {}
func (*Approve) isMessage()          {}
func (*Reject) isMessage()           {}
func (*Answer) isMessage()           {}
func (*Retry) isMessage()            {}
func (*Cancel) isMessage()           {}
func (*Pause) isMessage()            {}
func (*Resume) isMessage()           {}
func (*Reflect) isMessage()          {}
func (*Teach) isMessage()            {}
func (*Result) isMessage()           {}
func (*TimerFired) isMessage()       {}
func (*AdmitRun) isMessage()         {}
func (*RunAdmitted) isMessage()      {}
func (*RunPlanned) isMessage()       {}
func (*DependencyEnded) isMessage()  {}
func (*ChildChanged) isMessage()     {}
func (*RunEnded) isMessage()         {}
func (*LockFiles) isMessage()        {}
func (*FilesLocked) isMessage()      {}
func (*QueueMerge) isMessage()       {}
func (*MergeEnded) isMessage()       {}
func (*WithdrawRequests) isMessage() {}
func (*ReserveBudget) isMessage()    {}
func (*BudgetReserved) isMessage()   {}
func (*CommitBudget) isMessage()     {}
func (*RunReflected) isMessage()     {}
func (*OverlapChanged) isMessage()   {}
func (*AccountRefused) isMessage()   {}
func (*AccountsChanged) isMessage()  {}

// As returns v as a T, or the zero T (nil for a pointer) if v is something else.
// It is for code that cares about one type of message, input or output; what
// treats several of them is a type switch, which the linter holds complete.
func As[T any](v any) T {
	t, _ := v.(T)
	return t
}
