package access

import (
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// api returns the subject of a JetStream call about a stream, or about a consumer of
// it.
func api(call, stream string, consumer ...string) string {
	return "$JS.API." + strings.Join(append([]string{call, stream}, consumer...), ".")
}

// reads returns the calls that read a stream without a consumer, message by
// message. Direct gets are none of them: their answers are the messages as they
// are stored, without headers if the asker likes, on whatever subject the asker
// names. So none but a runner, whose word all of it is, may make any.
func reads(stream string) []string {
	return []string{api("STREAM.INFO", stream), api("STREAM.MSG.GET", stream)}
}

// consumes returns the calls that take messages from a consumer that is there.
func consumes(stream, consumer string) []string {
	return []string{
		api("CONSUMER.INFO", stream, consumer), api("CONSUMER.MSG.NEXT", stream, consumer),
		"$JS.ACK." + stream + "." + consumer + ".>", "$JS.ACK.*.*." + stream + "." + consumer + ".>",
	}
}

// microService returns the subjects on which a NATS micro service is asked about
// itself. They are spelled out, because an account that may listen on $SRV.* may do
// so on $SRV.>, too.
func microService(name string) []string {
	var list []string
	for _, verb := range []string{"PING", "STATS", "INFO"} {
		list = append(list, "$SRV."+verb, "$SRV."+verb+"."+name, "$SRV."+verb+"."+name+".*")
	}
	return list
}

// stores returns the calls of an object store. Where objects make room by
// themselves, none is purged.
func stores(b streams.Bucket) []string {
	list := append(reads(b.Stream()), b.Chunk("*"), strings.TrimSuffix(b.Metas(), ">")+"*")
	if !b.ForgetsOldest() {
		list = append(list, api("STREAM.PURGE", b.Stream()))
	}
	return list
}

// groupConsumers returns the call that makes the consumers of a step that the
// replicas of a group share. A consumer's name is one token, so it cannot be limited
// to those of the step.
func groupConsumers(step forge.Step) string {
	return api("CONSUMER.CREATE", streams.Commands, "*.forge.command."+string(step)+".in.*.>")
}

// sharedConsumer returns the call that makes the consumer of a step that all
// replicas share.
func sharedConsumer(step forge.Step) string {
	return api("CONSUMER.CREATE", streams.Commands, string(step)+".forge.command."+string(step)+".any.>")
}
