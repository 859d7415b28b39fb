// Package telemetry owns what the services tell about themselves in numbers: the names of
// all metrics, their units and the values that their attributes can have.
//
// [Instruments] is the one table of them; docs/metrics.md has it for operators. A service
// records through a [Recorder], whose methods are named after what happened. Nothing else
// can reach an instrument, so every attribute passes the bound that its row declares: it is
// of a closed set, or a project that the service knows, or one of the first few models that
// an agent named. Anything else is counted as [Other]. Ids of intents are never attributes.
//
// The package records by the API of OpenTelemetry alone; package export reads what was
// recorded.
package telemetry
