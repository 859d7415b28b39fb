package forge

// Message says what happened, as one of the types that package messages lists. The
// interface is sealed: a switch over its types that misses one does not pass
// the linter.
//
//sumtype:decl
type Message interface{ isMessage() }

func (*Submit) isMessage()           {}
func (*Edit) isMessage()             {}
func (*Approve) isMessage()          {}
func (*Reject) isMessage()           {}
func (*RequestChanges) isMessage()   {}
func (*Answer) isMessage()           {}
func (*Retry) isMessage()            {}
func (*Cancel) isMessage()           {}
func (*Pause) isMessage()            {}
func (*Resume) isMessage()           {}
func (*Reflect) isMessage()          {}
func (*Teach) isMessage()            {}
func (*SetSchedules) isMessage()     {}
func (*PauseSchedule) isMessage()    {}
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
func (*ObstacleReported) isMessage() {}
func (*ObstaclesChanged) isMessage() {}

// As returns v as a T, or the zero T (nil for a pointer) if v is something else.
// It is for code that cares about one type of message, input or output; what
// treats several of them is a type switch, which the linter holds complete.
func As[T any](v any) T {
	t, _ := v.(T)
	return t
}
