// Package github is the back end for GitHub and GitHub Enterprise Server, by their REST API
// of version 2022-11-28 and, where that has no word for something, GraphQL.
//
// # The account
//
// It is an account with a token, or an App: then the gateway makes tokens of one
// installation by itself, each good for an hour, and replaces them five minutes before
// their end, or when GitHub does not take them any more. The App's key and the token are
// read from their files when they are needed, so that they can be replaced.
//
// It has to see who may write in a repository (metadata), and write issues, pull requests,
// statuses and contents, which merging is. To read the protection of a branch it needs to
// read the administration; who may not is told nothing about it, and finds out by asking to
// merge.
//
// # What GitHub does in its own way
//
// Taken from its published description, which TestContract holds the client and the fake
// to, and from what others have met:
//
//   - A pull request is an issue with a pull_request; other than at Gitea the field is not
//     there at all in an issue that is none.
//   - Who put a label on is in the events of an issue.
//   - Lists have at most 100 on a page, and the header Link says whether there is another
//     one.
//   - An answer has an ETag, and the question whether it still is so costs nothing of the
//     limit.
//   - The primary limit is 403 or 429 with x-ratelimit-remaining: 0, and ends at
//     x-ratelimit-reset. A secondary one, for too much at once or too much that is written,
//     is the same number with retry-after, or with nothing but its words. Who goes on
//     asking is barred, so nothing is asked until its end.
//   - A repository that was renamed answers by a redirect to its number, for as long as no
//     other one has its name. Redirects are followed on the forge itself alone, with the
//     method as it was. A name that leads to another repository than before is an error.
//   - The token of an installation reads every public repository. So a repository counts
//     only if it is in the installation.
//   - The permission of an account is admin, write, read or none, and the name of its role
//     says triage.
//   - Everybody may review with any verdict, and nothing says who counts: those who may
//     write do, each with their last verdict.
//   - A review that was dismissed does not say any more what it was. It takes the place of
//     those before it all the same.
//   - Where stale approvals are not dismissed, each push takes reviews along to the new
//     head, whatever changed. A review that is older than our first status of that head is
//     about no commit that we know.
//   - Checks are statuses, which whoever writes may write, and check runs, which Apps
//     write. The worse of two with one name counts.
//   - A label that is put on and is not there is made. So it is asked for first.
//   - Whether a pull request is a draft is changed by GraphQL alone, and which remarks are
//     resolved is told by it alone.
//   - Edits of an issue's body are told by it alone, too, each with its editor.
//   - A merge is conditional on sha: 409 if the head is another one. Every other refusal is
//     405 with a reason in English. There is no fast-forward, and "rebase" makes new
//     commits although nothing moved.
//   - The commit of the base in a pull request is that of its last push. So the branch
//     itself is asked.
//   - A branch is protected by a rule of its own, by rulesets of the repository and by
//     those of the organisation; all of them count. Who may go round a ruleset is not told.
//   - A delivery that found no one is gone: GitHub does not send again by itself.
//
// # Who can fool us, and what helps
//
//	whoever knows no secret sends a delivery    package hooks; a hint is never believed anyway
//	an old delivery comes again                 it is known by its id, or leads to one more look
//	a stranger writes a command or approves     permissions are asked for by the number of who acts (TestRoles, TestReviewsCount)
//	a login was given up and taken              the number is another one (TestRenamedUser)
//	a repository's name was given up and taken  its number, and the App's installation (TestRenamedRepository)
//	a token of others                           the installation of each repository is compared (TestAnotherInstallation)
//	an App that was shut out                    it is said who has to let it in again (TestSuspended)
//	an approval of another change               a commit is taken off it (TestReviewsThatMove)
//	an App writes a check in a name of ours     its author is told (TestChecks)
//	a redirect to another place                 it is not followed (TestTheTokenStays)
//	a limit                                     nothing is asked until its end (TestLimits, TestPrimaryLimit)
package github
