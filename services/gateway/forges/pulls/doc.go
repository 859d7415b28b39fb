// Package pulls makes, watches and merges the pull requests by which changes
// are merged, for one forge.
//
// A [Keeper] carries out two steps of the project's rules, and decides nothing: [Keeper.Open]
// makes the pull request of a change or brings it up to date, [Keeper.Merge] has the forge merge
// it if its head is the very commit that was verified. Both answer a snapshot of the pull
// request: its state, head and base, the checks of others, who reviewed which commit and whether
// they may decide, and why the forge would not merge it now. [Keeper.Run] looks again when a
// hook tells of it and in every sweep, and reports each snapshot that is a new one as a further
// result of the attempt that made the pull request. There is one function that makes snapshots.
//
// # The life of one
//
//	an implementer pushes the branch    and nothing is known of it here before the step
//	Open                                finds that there is none, that the branch is at the commit, and makes it
//	Open, again                         finds it, and writes the text and the statuses that differ
//	Run                                 tells that a check failed, or that ada asks for changes of a commit
//	an implementer pushes the rework    the forge dismisses approvals of another change, which the next snapshot shows
//	Open, for the new head              has the text and the statuses say what was found about that one, and answers her remarks
//	Run                                 tells that nothing is in the way
//	Merge                               asks the forge, and looks
//	Merge, by queue                     puts it into the forge's own queue, and looks
//	a person merges, or closes it       Run tells by whom, and by which commit
//	the intent is cancelled             Run closes it, and says why
//
// Between any two of these the process may be killed, and what was done is found.
//
// # What can be done again
//
// Everything. A pull request is found by its number, or before that is known by
// its branch and base; a text, a label or a status that is there is not
// written; one that is merged or closed meanwhile is answered as that. A worker
// that was killed anywhere, or whose answer was lost, begins from the start.
//
// A report of an attempt ends it, and every gateway reports what has its mark.
// So the mark is written last: what has it lacks nothing.
//
// # Who lies, and what becomes of it
//
//	a stranger approves                       the review is in the snapshot, and may decide nothing: the forge does not count it
//	an account that no person is known for    the same
//	a person who may not write any more       the same: the forge is asked when the snapshot is made
//	a person opens one of our branch first    nothing is written or merged; the step fails with whom to ask
//	a person opens one with a mark like ours  it is not ours, and is not reported
//	a writer edits the mark of ours           the rules believe only the pull request that they asked for; the next text has it again
//	a writer writes a status of our name      the snapshot says whose it is
//	a person moves it to another base         it is the same one: no second one is opened, and it is not merged
//	a person says no after the decision       a merge is asked for only if the newest look allows it
//	a person pushes to the branch             its text and statuses are left as they are; the snapshot has another head
//	a person pushes to what is queued         it is taken out of the queue, if the forge did not
//	an agent writes @all, Closes #1, a table  it is shown as text, and nothing obeys it
//	an agent's title is WIP: x                it is no draft
//	another one writes an answer like ours    it is none, and ours is written
//	a remark is edited before its answer      it has none: nothing was done for those words
//
// # What fails
//
//	the forge limits us, or is away   the step fails with the time at which to come again; nothing waits for it here
//	it has not computed yet           a merge is asked for a few times within seconds, and then the snapshot says so
//	it refuses a merge                the snapshot has its reason
//	a hook is lost                    the next sweep finds it
//	no runner is there                a report waits for one
//
// # What it costs
//
// A snapshot is six requests: the pull request, its reviews, the statuses of its head, the
// protection of its base, and whether it is behind, with one more for each review that has
// remarks, and one for each person whose review may decide. A sweep makes one for each pull
// request that is open. A step writes only what is not there: a text, its labels, three statuses.
//
// # What it does not do
//
// It does not decide whether a change is merged, made again or left to a person:
// the rules of the project do. It pushes nothing and reads no repository of git;
// that the tree on the base is the one that was verified, an implementer proves.
//
// It does not tell agents' words from people's in a review: both are data. The text
// of the pull request is ours, and is edited in place; of comments it writes one
// when it closes a pull request, and an answer to each remark that the rules name.
package pulls
