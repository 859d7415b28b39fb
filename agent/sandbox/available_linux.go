package sandbox

// Available reports whether the operating system supports sandboxes at all. Whether
// this machine permits them is known only after trying; see process.Probe.
const Available = true
