// Package gitea is the back end for Gitea and Forgejo, by their API of version 1.
//
// Texts of the forge are read within bounds, and no redirect is followed, so that the token goes nowhere else.
//
// # The account
//
// It needs the right to administer the repositories: Gitea tells others' permissions to administrators only, and answers 403 to a
// writer.
//
// # What Gitea does in its own way
//
// Seen on 1.26.0; what the client relies on is held by TestConformance, on a real one and on the fake:
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
//   - A delivery that found no one is gone: there are no retries, and no API that lists deliveries.
package gitea
