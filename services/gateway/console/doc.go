// Package console serves people by web pages: what waits for them, what is going on, and the
// proof behind a change, so that they can decide.
//
// It has no way in of its own. A person signs in with a token of the operator's file, and
// whatever a page shows or does is asked of package api, in the name of that token: the
// roles, bounds and errors are those of the API. The console adds pages, sessions and
// the checks that browsers need.
//
// # Who is trusted with what
//
// A cookie is believed if this installation's key made it, and counts only while the entry of
// the operator's file still has the very token that was shown ([sessions]). The pages of other
// origins are not trusted: no post of theirs is taken, no frame of theirs shows a page, and no
// script runs but our own file. A path, a query and a form are not trusted to be names; each
// goes through the constructor of its id.
//
// Texts of agents, outsiders and commands are never HTML: every template is html/template's,
// and no value has a type that it leaves as it is (TestNoTextIsTrusted). What cannot be seen in
// them is spelled out, so that a person decides about the text that an agent gets.
//
// # What a decision means
//
// A form repeats the state that its person saw, with the plan's hash, and has
// an id of the decision. It is handed on only while that is still so; otherwise
// the page says what changed. Sent twice, it counts once.
package console
