// Package conn is the connection that the doors of a bus share. It reads messages of
// streams directly, without consumers ([Conn.Last], [Conn.Each], [Conn.Lasts]), publishes
// until a message is durable ([Conn.Store]), pulls from consumers and makes them again when
// they are lost ([Conn.Pull]), follows streams live ([Following]) and puts messages that
// cannot be handled among the dead letters ([Conn.Terminate]).
//
// Every call is bounded, and what can be repeated is repeated until it is answered.
package conn
