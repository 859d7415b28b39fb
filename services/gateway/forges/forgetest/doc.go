// Package forgetest has a forge for tests: a server in the process that speaks the dialects of
// Gitea, GitHub and GitLab, as far as the gateway uses them, and that misbehaves when a test says
// so. The conformance suite here runs against all dialects and against a real Gitea, so that it is
// not our own idea of one. GitHub's dialect and GitLab's are held by what is published of them
// (TestContract of packages github and gitlab).
//
// People act on it by Gitea's API, each with a token of their own:
//
//	f := forgetest.NewFake()
//	defer f.Close()
//	// POST f.URL()/api/v1/user/repos as root1, .../issues as eve, .../labels as ada
//	f.Script(forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"60"}}})       // the next request is refused
//	f.Script(forgetest.Fault{Method: "POST", Part: "/comments", Status: 502, After: true}) // a comment is written, and its answer lost
//	f.Script(forgetest.Fault{Status: 405, Message: "Please try again later"})              // a merge whose outcome is not computed yet
//	f.Send(forgetest.Doubled)                                                               // every hook comes twice
//	f.Send(forgetest.Late)                                                                  // and none before f.Release()
//
// # GitHub's dialect
//
// It is spoken of the same issues and pull requests below /api/v3, as by an Enterprise Server,
// and Hub has all that is there in it alone:
//
//	f.Hub.Install("Iv1", &key.PublicKey, "root1/web")  // an App, with tokens of its own that end
//	f.Hub.Suspend(installation, true)                 // and is not let in any more
//	f.Hub.Revoke()                                    // its tokens end before their time
//	f.Hub.UseUp(3, reset)                             // the primary limit has three requests left
//	f.Hub.Rename("root1/web", "root1/shop")           // the former name redirects, until another repository has it
//	f.Hub.RenameUser("ada", "ada2")                   // the former login is another account's
//	f.Hub.CarryReviews()                              // each push takes reviews along to the new head
//	f.Hub.Check(forgetest.CheckRun{...})              // an App says something about a commit
//	f.Hub.RuleSet("root1/web", "main", "pull_request", ...)
//	f.Queues.On("root1/web", true, false)             // a merge queue, or in GitLab's dialect trains, which merges as a test says
//
// It differs from Gitea's where GitHub does, so that a back end that takes one for the other
// fails:
//
//   - a pull request's base has the commit of the last push, and an open one a merge commit as well
//   - lists say by the header Link whether there is more, and their address leads elsewhere
//   - reviews do not say who counts, and a dismissed one not what it was
//   - labels that are not there are made
//   - no merge brings the very commit to the base
//   - answers have ETags; what is so still costs nothing of the limit
//   - a token of an installation reads what is public everywhere, and writes where it is installed
//
// # GitLab's dialect
//
// It is spoken below /api/v4, and Lab has all that is there in it alone: settings of a project
// (Set), jobs of pipelines (Job), notes by GitLab itself and what is confidential (Add), forks
// (Fork), and users who are blocked (Change). It refuses merges without a reason, has no
// reviews but notes of them, and knows an issue and a merge request each by its own path alone.
//
// # All of them
//
// Its repositories are real ones of git ([Fake.Dir]), to which agents push; [Fake.Pushed] has
// it look at them, as each request does.
//
// Its clock goes on by a second with each request, so that times have an order. All
// repositories are public: who has no role in one may read, open issues and comment, as on most
// forges.
package forgetest
