// Package scheduler knows the intents of a project. It admits their runs, answers
// those that depend on others, brings parents and children together, and pauses,
// resumes or cancels all of them.
//
// There is no limit on how many runs are under way: workers are scarce, not runs.
//
// An intent, as its project sees it, and what the other intents are sent:
//
//	        AdmitRun                 RunPlanned                RunEnded
//	unknown -------> active, proposed ------> active, approved ------> ended
//	                   |       ^                                         |
//	                   |       +----------- AdmitRun (a retry) ----------+
//	                   +-------------------- RunEnded ------------------>+
//
//	AdmitRun    RunAdmitted to the intent, unless it is a child whose parent's plan is not
//	            known yet; ChildChanged to its parent
//	RunPlanned  RunAdmitted to its children that wait for that; DependencyEnded for what has
//	            ended already, what does not exist, and what waits for the intent itself
//	RunEnded    DependencyEnded to those that wait for it, and to those that were blocked by it
//	            if it is done; ChildChanged to its parent; Cancel to
//	            its children if a person stopped it, otherwise RunAdmitted to those that wait
//
// Each of the three has two halves, so that the other parts of a project can act
// between them: the first keeps what the message says, the second sends the answers
// and is safe to repeat.
package scheduler
