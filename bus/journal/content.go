package journal

import (
	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// Content returns the content of the message as which an event of a person or a worker
// came, for comparison with its signature. A sender may have written the same in
// another form, such as JSON; then it is another content.
func Content(ev *forge.Event) ([]byte, error) {
	if r := forge.As[*forge.Result](ev.Message); r != nil {
		return wire.Results.Marshal(r)
	}
	sent := forge.Event{ID: ev.ID, To: ev.To, Actor: ev.Actor, Account: ev.Account, Ref: ev.Ref, Message: ev.Message}
	if submit := forge.As[*forge.Submit](ev.Message); submit != nil {
		in := submit.Intent
		in.Requesters = nil // the runner notes those, of whom the signature speaks
		sent.Message = &forge.Submit{Intent: in, Preapproved: submit.Preapproved, Comments: submit.Comments}
	}
	return wire.Events.Marshal(&sent)
}
