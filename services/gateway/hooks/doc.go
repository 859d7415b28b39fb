// Package hooks is the door through which forges and chats say that something
// happened, and systems ask for changes: POST /hooks/<name>.
//
// [Parse] reads the operator's file of hooks, and a [Door] serves them. A request
// is read within bounds, its signature is compared over the bytes that came, and
// it is stored before it is answered; nothing else happens in it. Whatever a body
// says is a hint to look at the forge, so that a lost, doubled, late or repeated
// delivery does no harm. What a system asks for is submitted by package events.
//
// # Who signs how
//
//	github       HMAC-SHA256 of the body, hexadecimal, in X-Hub-Signature-256; the id is X-GitHub-Delivery
//	             (a form, which GitHub sends unless its settings say JSON, is answered by 400)
//	gitea        the same; the id is X-Gitea-Delivery
//	gitlab       the secret itself in X-Gitlab-Token, where it does not begin with whsec_; the id is Idempotency-Key, or X-Gitlab-Event-UUID.
//	             A secret that begins so is a signing token: then as standard
//	slack        HMAC-SHA256 of v0:<time>:<body> in X-Slack-Signature; the id is event_id of the body
//	standard     HMAC-SHA256 of <id>.<time>.<body>, base64, among those in webhook-signature; the id is webhook-id
//	cloudevents  the secret as a bearer token; the id is that of the event with its source, or a digest of both
//
// Where a time is signed, it may be five minutes from now. Where nothing signs
// the id, another id for an old body is one more hint.
//
// # What is answered
//
//	202  it is stored, or was before
//	204  the signature fits, and such events lead to nothing: 4xx would make GitLab switch the hook off
//	200  Slack asked whether this is its door, or one of Slack is stored
//	400  the signature fits, and the content has no form that can be stored
//	401  the signature does not fit, or is not there, or there twice
//	404  there is no such hook
//	408  the body did not come in time
//	413  the body is too large
//	429  too many at once, or more than the hook's rate
//	503  it could not be stored, or no secret can be read
package hooks
