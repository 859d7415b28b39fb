// Package scheduler knows the intents of a project. It admits their runs, answers
// those that depend on others, brings parents and children together, and pauses,
// resumes or cancels all of them.
//
// There is no limit on how many runs are under way: what is scarce are the workers.
//
// An intent, as its project sees it, and what the other intents are sent:
//
//	          Enter                    Plan                      End
//	unknown -------> active, proposed ------> active, approved ------> ended
//	                   |       ^                                         |
//	                   |       +------------- Enter (a retry) -----------+
//	                   +---------------------- End --------------------->+
//
//	Enter  RunAdmitted to the intent, unless it is a child whose parent's plan is not
//	       known yet; ChildChanged to its parent
//	Plan   RunAdmitted to its children that wait for that; DependencyEnded for what has
//	       ended already, what does not exist, and what waits for the intent itself
//	End    DependencyEnded to those that wait for it, and to those that were blocked by it
//	       if it is done; ChildChanged to its parent; Cancel to
//	       its children if a person stopped it, otherwise RunAdmitted to those that wait
//
// Each of the three has two halves, so that the other parts of a project can act
// between them: the first keeps what the message says, the second sends the answers
// and is safe to repeat.
package scheduler
