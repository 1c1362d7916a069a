// Command dsasched schedules neural networks for accelerators and says how
// fast they would run. `dsasched --help` lists what it can do.
package main

import "github.com/dsasched/dsasched/cmd/cli"

func main() { cli.Main() }
