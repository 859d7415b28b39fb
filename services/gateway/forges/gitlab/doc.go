// Package gitlab is the back end for GitLab, gitlab.com or an instance of one's
// own, by its REST API of version 4.
//
// # The account
//
// It is that of a token with the scope api: a project's or a group's, for which GitLab makes an
// account that is a program, or a person's of its own. It needs the role Developer for issues, and
// what the base branch allows to merge for merge requests. The rules about approvals are shown to
// Maintainers in some versions; who is not told finds out by asking to merge.
//
// # What GitLab does in its own way
//
// Taken from its documentation and source; what the client sends and reads is held to the
// types of its official client (TestContract), and its behaviour to the fake (TestConformance,
// TestPullRequests, TestPullsOfOthers). It has not been run against GitLab itself.
//
//   - A project's name has groups in it, any number of them, and is one part of a path with its
//     slashes escaped. By a former name it can be read, through a redirect, and not be written to. So
//     all but the project itself is asked for by its number.
//   - Issues and merge requests are counted apart, each from 1.
//   - An issue or a comment may be confidential. Such a one is not found here, and is in no list.
//   - Among the notes are those that GitLab writes itself in the name of who did something (system),
//     and remarks about lines. None of them is a comment.
//   - A reaction to a note updates it, as an edit does: nothing tells the two apart. The same reaction
//     again is 404.
//   - The level of a member is a number, with roles between those of other forges: planner (15) and
//     reporter (20) may triage, developer (30) may write, maintainer (40) administers. Who is no member
//     may read what is public or internal.
//   - An answer has an ETag, by which a list that is as it was is not sent again. The question counts for the limits all the same.
//   - Programs are those accounts of which it says so when one of them is asked for.
//   - A draft is a title that begins with Draft: or in one of the other ways.
//   - A label that is put on and is not there is made. So it is asked for first.
//   - There are no reviews. Who approves now is a list without commits, whoever asks for changes is a
//     reviewer with that state, and when each was is in system notes. The commit of a decision is the
//     head at that time; the versions of a merge request say since when it had each.
//   - Who may approve is a matter of editions: those count who may write.
//   - Statuses that were written and jobs of pipelines are one list, several of one name for several
//     refs. To wait cannot be written twice.
//   - How a project merges is its setting: with a merge commit, or by fast-forward alone, squashed or
//     not. There is no rebase that makes new commits.
//   - A merge is conditional on sha: 409 if the head is another one. Every other refusal is 405 or 422
//     without a reason, which detailed_merge_status of the merge request has.
//   - That pipelines have to pass, and remarks to be resolved, is the project's, for all branches.
//   - One that cannot be opened again is answered with 200, and stays closed.
//
// # Who can fool us, and what helps
//
//	whoever knows no secret sends a delivery       package hooks; a hint is never believed anyway (TestGitLab)
//	a confidential issue gets the label            it is not found, and its hook leads to nothing (TestConfidential)
//	a note by GitLab itself looks like a command   it is no comment (TestSystemNotes)
//	an author edits an issue behind a label        GitLab's own notes say who and when (TestEdits of package forgetest)
//	a command is edited, or reacted to             it is not carried out (TestEditedNotes)
//	a stranger approves, or writes as GitLab would only those who may write count, by system notes alone (TestApprovals)
//	an approval of another change                  its commit is the head at that time (TestApprovals)
//	a writer writes a status in our name           its author is told (TestStatuses)
//	a fork has a branch of our name                its project is another one (TestForks)
//	a name that is a path                          one constructor, before anything is asked (TestNames)
//	the head moves between look and merge          the merge names it (TestMerge)
//	a project's name was given up and taken        its number (TestRenamed)
//	a redirect to another place                    it is not followed (TestTheTokenStays)
//	a limit                                        nothing is asked until its end (TestLimits)
//	an answer without an end                       it is bounded (TestLargeTexts)
package gitlab
