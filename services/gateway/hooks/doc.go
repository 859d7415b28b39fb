// Package hooks is the door through which forges and chats say that something happened: POST /hooks/<name>.
//
// [Parse] reads the operator's file of hooks, and a [Door] serves them. A request is read within bounds, its signature is compared over
// the bytes that came, and it is stored before it is answered; nothing else happens in it. Whatever a body says is a hint to look at
// the forge, so that a lost, doubled, late or repeated delivery does no harm.
package hooks
