package messages

import (
	"reflect"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// AnswerApprove is the answer by which a person decides that a change counts as
// approved that its reviewers disagree about.
const AnswerApprove = "approve"

// Approves reports whether an answer approves a change, if it is one to such a
// question; that, the rules know.
func Approves(answer string) bool { return strings.EqualFold(strings.TrimSpace(answer), AnswerApprove) }

// Verb returns the verb by which people send a message: the last token of its subject. It is
// empty for a message that they do not send. Permissions are given by verb, and an answer that
// approves a change takes the right to approve: it has that verb, whichever question it answers.
func Verb(m forge.Message) string {
	if a := forge.As[*forge.Answer](m); a != nil && Approves(a.Answer) {
		m = &forge.Approve{}
	}
	return verbs[reflect.TypeOf(m)]
}

// verbs has the verb of each type of message.
var verbs = func() map[reflect.Type]string {
	byType := map[reflect.Type]string{}
	for _, spec := range All() {
		byType[reflect.TypeOf(spec.Message)] = spec.Verb
	}
	return byType
}()
