// Package forgetest has a forge for tests: a server in the process that speaks Gitea's dialect, as far as the gateway uses it, and
// that misbehaves when a test says so. The conformance suite of package gitea runs against it and against a real Gitea, so that it is
// not our own idea of one.
//
// People act on it by the same API, each with a token of their own:
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
// Its repositories are real ones of git ([Fake.Dir]), to which agents push; [Fake.Pushed] has it look at them, as each request does.
//
// Its clock goes on by a second with each request, so that times have an order. All repositories are public: who has no role in one may
// read, open issues and comment, as on most forges.
package forgetest
