package pods

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// podStatus has the fields of a pod that progress and end read.
type podStatus struct {
	Metadata struct{ Name, DeletionTimestamp string }
	Status   struct {
		Phase, Reason, Message string
		Conditions             []struct{ Type, Status, Reason, Message string }
		ContainerStatuses      []struct {
			Name  string
			State struct {
				Running    *struct{}
				Waiting    *struct{ Reason, Message string }
				Terminated *struct {
					Reason, Message string
					ExitCode        int
				}
			}
		}
	}
}

// hopeless are the reasons for which a container never starts.
var hopeless = map[string]bool{"InvalidImageName": true, "ErrImageNeverPull": true, "CreateContainerConfigError": true, "CreateContainerError": true}

// refusedPull reports whether a registry has said that there is no such image, or not for
// us. One that does not answer may do so later.
func refusedPull(message string) bool {
	for _, no := range []string{"not found", "unauthorized", "denied", "403 Forbidden"} {
		if strings.Contains(message, no) && strings.Contains(message, "pull") {
			return true
		}
	}
	return false
}

// progress returns whether the command's container runs, whether it never will, and why
// it does not yet.
func (p *podStatus) progress() (running, fatal bool, why string) {
	for _, c := range p.Status.ContainerStatuses {
		switch state := c.State; {
		case c.Name != container:
		case state.Running != nil:
			return true, false, ""
		case state.Terminated != nil:
			return false, false, p.end()
		case state.Waiting != nil:
			return false, hopeless[state.Waiting.Reason] || refusedPull(state.Waiting.Message), text(state.Waiting.Reason, state.Waiting.Message)
		}
	}
	if p.Status.Phase == "Failed" {
		return false, false, p.end()
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return false, false, text(c.Reason, c.Message)
		}
	}
	return false, false, text(p.Status.Phase, p.Status.Message)
}

// end says how the pod ended, and who ended it; empty if it did not. A container ends
// before Kubernetes says why the pod does.
func (p *podStatus) end() string {
	if p.Status.Phase != "Failed" && p.Status.Phase != "Succeeded" {
		return ""
	}
	var why []string
	if p.Status.Reason != "" || p.Status.Message != "" {
		why = append(why, text(p.Status.Reason, p.Status.Message))
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" && c.Reason != p.Status.Reason {
			why = append(why, text(c.Reason, c.Message))
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; c.Name == container && t != nil {
			why = append(why, text(t.Reason, fmt.Sprintf("status %d %s", t.ExitCode, t.Message)))
		}
	}
	if len(why) == 0 {
		return p.Status.Phase
	}
	return strings.Join(why, "; ")
}

// losses maps the reasons of Kubernetes, of a pod, its disruption or its container.
var losses = map[string]telemetry.PodLoss{
	"Evicted": telemetry.PodEvicted, "EvictionByEvictionAPI": telemetry.PodEvicted, "TerminationByKubelet": telemetry.PodEvicted,
	"OOMKilled": telemetry.PodOutOfMemory, "PreemptionByScheduler": telemetry.PodPreempted, "Preempting": telemetry.PodPreempted,
	"DeadlineExceeded": telemetry.PodDeadline,
	"NodeShutdown":     telemetry.PodNode, "Terminated": telemetry.PodNode, "NodeLost": telemetry.PodNode,
	"DeletionByTaintManager": telemetry.PodNode, "DeletionByPodGC": telemetry.PodNode,
}

// loss returns why a pod ended. Its own reason counts more than those of its disruption and of
// its container, which say how.
func (p *podStatus) loss() telemetry.PodLoss {
	list := []string{p.Status.Reason}
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" {
			list = append(list, c.Reason)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; c.Name == container && t != nil {
			list = append(list, t.Reason)
		}
	}
	for _, reason := range list {
		if loss, ok := losses[reason]; ok {
			return loss
		}
	}
	return telemetry.Other
}

// text joins a reason of Kubernetes and its message, as one line for people.
func text(reason, message string) string {
	return term.Short(strings.Trim(reason+": "+message, ": "), 500)
}

// lostError is the end of a pod before its command had begun.
type lostError struct {
	error

	loss telemetry.PodLoss
}

// Unwrap returns the error that says how it ended.
func (e *lostError) Unwrap() error { return e.error }
