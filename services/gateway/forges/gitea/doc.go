// Package gitea is the back end for Gitea and Forgejo, by their API of version 1.
//
// Texts of the forge are read within bounds, and no redirect is followed, so
// that the token goes nowhere else.
//
// # The account
//
// It needs the right to administer the repositories: Gitea tells others'
// permissions to administrators only, and answers 403 to a writer.
//
// # What Gitea does in its own way
//
// Seen on 1.26.0; what the client relies on is held by TestConformance,
// TestPullRequests and TestPullsOfOthers, on a real one and on the fake:
//
//   - A pull request is an issue with a pull_request that is not null. Issue and Hint take it for none of ours.
//   - Who put a label on is in the timeline only, as an entry of the type label whose body is "1"; the entry without a
//     body says that it was taken off. So a label that was put on twice is the last one's.
//   - Issues are listed with the newest first, in pages; comments of an issue without pages.
//   - since means changed since, the second of it included. Times have seconds. An edit that changes nothing leaves them as they are.
//   - The permission of an account is none, read, write, admin or owner. There is no triage: who may label may write.
//   - An account that is not there is 404 also where its permission is asked for.
//   - The same reaction again is answered as the first one was, and counts once.
//   - Nothing tells a program from a person, but the numbers of Gitea's own accounts, such as that of its actions, are negative.
//   - It sends GitHub's headers beside its own with a delivery. The event is in X-Gitea-Event-Type: issues, issue_label, issue_comment.
//   - An edit of an issue's body leaves nothing in the timeline; one of its title does. The delivery about it has the editor as sender.
//   - A delivery that found no one is gone: there are no retries, and no API that lists deliveries.
//
// Of pull requests:
//
//   - A second one of the same branches is 409 while one is open. Asked for by its branches, the answer is any that ever was.
//   - A draft is a title that begins with WIP: or [WIP]. There is no other sign of one.
//   - Labels that are not there are passed over without a word.
//   - A merge is conditional on head_commit_id. Each refusal is 405 or 409 with a reason in English and no code, and 404 where it is closed.
//     405 is also for one that has not been computed yet, which nothing but the reason tells.
//   - Asked to merge without a title, it writes one of its own and drops the text that it shows on the page (TestMergedByAPress).
//   - Everybody may review, with any verdict; official says who counts. A second review of the same person dismisses their first.
//   - Whoever may write may write a status of any name. Each writing is a new status; the last of each name counts.
//   - Who closed it is in the timeline only.
//   - The rule of a branch is shown to administrators.
package gitea
