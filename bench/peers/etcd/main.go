// Locks with etcd as its own client library makes them. The command line is that of the load
// generator (modes connect, heartbeat, handover and memory --waiters) with --cgroup besides, and so
// is the JSON it prints.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

type options struct {
	server                                                string
	spent                                                 account
	seconds, warmUp, settle                               float64
	concurrent, connections, outstanding, waiters, rounds int
	sizes                                                 []int
}

func parse(arguments []string) (string, options, error) {
	var o options
	usual := flag.NewFlagSet("etcd_load", flag.ContinueOnError)
	usual.StringVar(&o.server, "server", "", "address of etcd, IPv4:PORT")
	usual.IntVar(&o.spent.pid, "pid", 0, "its process")
	usual.StringVar(&o.spent.cgroup, "cgroup", "", "folder of the control group that holds it alone")
	usual.Float64Var(&o.seconds, "seconds", 2, "length of the measured part")
	usual.Float64Var(&o.warmUp, "warm-up", 0.3, "seconds of load before")
	if err := usual.Parse(arguments); err != nil {
		return "", o, err
	}
	if usual.NArg() == 0 {
		return "", o, fmt.Errorf("a mode is wanted: connect, heartbeat, handover or memory")
	}
	mode := usual.Arg(0)
	own := flag.NewFlagSet(mode, flag.ContinueOnError)
	own.IntVar(&o.concurrent, "concurrent", 1, "at a time")
	own.IntVar(&o.connections, "connections", 64, "owners")
	own.IntVar(&o.outstanding, "outstanding", 64, "in flight")
	own.IntVar(&o.waiters, "waiters", 64, "of the lock that is handed over")
	own.IntVar(&o.rounds, "rounds", 1000, "that count")
	sizes := own.String("sizes", "50,500", "ascending numbers of waiters")
	own.Float64Var(&o.settle, "settle", 6, "seconds to wait for a sample of memory")
	rest := usual.Args()[1:]
	if mode == "memory" { // there a flag, and nothing else is possible
		rest = without(rest, "--waiters")
	}
	if err := own.Parse(rest); err != nil {
		return "", o, err
	}
	for _, word := range strings.Split(*sizes, ",") {
		size, err := strconv.Atoi(word)
		if err != nil {
			return "", o, err
		}
		o.sizes = append(o.sizes, size)
	}
	return mode, o, nil
}

func without(words []string, unwanted string) []string {
	var kept []string
	for _, word := range words {
		if word != unwanted {
			kept = append(kept, word)
		}
	}
	return kept
}

func run() error {
	mode, o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	var result interface{}
	switch mode {
	case "connect":
		result, err = runConnect(o)
	case "heartbeat":
		result, err = runHeartbeat(o)
	case "handover":
		result, err = runHandover(o)
	case "memory":
		result, err = runMemory(o)
	default:
		err = fmt.Errorf("no such mode: %s", mode)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "etcd: %v\n", err)
		os.Exit(1)
	}
}
