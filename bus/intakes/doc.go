// Package intakes stores what the rules of intake let in, so that their limits
// count the same for all gateways, also after a restart.
//
// There is one subject for each forge, and its entries have one order: an entry is stored only
// by a gateway that has read all before it. So two gateways cannot both take the last place
// that a limit has. Entries are forgotten after two days, since every limit counts one day.
package intakes
