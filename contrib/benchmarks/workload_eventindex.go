package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

const (
	eventsPerFile = 5000
	filesPerRun   = 8
)

// eventindex is a catalogue of events of a physics experiment: wide rows, many of their
// texts the same for a file or for a run.
func eventindex() *Workload {
	t := eventindexTable()
	return &Workload{
		Name: "eventindex",
		About: "56 attributes (32 strings, 21 integers, 3 doubles), about 2 KB a row as CSV; key (runnumber, eventnumber); " +
			"by run and file, shuffled within a file of 5,000",
		Table: t, Rows: 300_000, Quick: 20_000,
		Scans: []Scan{
			{Name: "count where streamname = 'physics_Main'", Column: t.column("streamname"), Op: Equal, Text: "physics_Main", Sum: -1},
			{Name: "count where dsname like '%AOD%'", Column: t.column("dsname"), Op: Contains, Text: "AOD", Sum: -1},
			{Name: "count where eftrigmask like '%;317;%'", Column: t.column("eftrigmask"), Op: Contains, Text: ";317;", Sum: -1},
			{Name: "sum(lumiblockn) where bunchid > 3000", Column: t.column("bunchid"), Op: Above, Int: 3000, Sum: t.column("lumiblockn")},
		},
		Three: t.columns("lumiblockn", "streamname", "guid0"), Update: t.column("lumiblockn"), Rescan: 3,
		Generate: generateEvents,
	}
}

// The attributes; those of a list that ends in a digit count from 0.
var (
	eventInts = []string{"runnumber", "eventnumber", "lumiblockn", "bunchid", "eventtime", "eventtimens", "lvl1id", "bcid_offset",
		"issimulation", "istestbeam", "iscalibration", "conditionsrun", "processid", "statuselement", "specialtag", "detectormask",
		"hltpsk", "l1psk", "bgcode", "fileindex", "oid"}
	eventDoubles = []string{"eventweight", "pileup", "luminosity"}
	eventWords   = []string{"dsname", "streamname", "project", "datatype", "prodstep", "amitag", "release", "site", "owner", "smk", "hltkeys",
		"guid0", "guid1", "guid2", "guid3", "db0", "db1", "db2", "db3", "cnt0", "cnt1", "cnt2", "cnt3", "clid0", "clid1", "clid2", "clid3"}
	eventTexts = []string{"token", "l1trigmask", "l2trigmask", "eftrigmask", "physmask"}
)

func eventindexTable() *Table {
	t := &Table{Name: "eventindex", Key: 2}
	for _, n := range eventInts {
		t.Columns = append(t.Columns, Column{Name: n, Kind: Int})
	}
	for _, n := range eventDoubles {
		t.Columns = append(t.Columns, Column{Name: n, Kind: Float})
	}
	for _, n := range eventWords {
		t.Columns = append(t.Columns, Column{Name: n, Kind: Text, Words: true})
	}
	for _, n := range eventTexts {
		t.Columns = append(t.Columns, Column{Name: n, Kind: Text})
	}
	return t
}

func generateEvents(rows int, _ string, emit func(Row) error) error {
	g := &eventMaker{r: seeded(3), emit: emit}
	for file := 0; rows > 0; file++ {
		n := min(rows, eventsPerFile)
		if file%filesPerRun == 0 {
			g.newRun(file / filesPerRun)
		}
		if err := g.file(file, n); err != nil {
			return err
		}
		rows -= n
	}
	return nil
}

// eventMaker makes the events of one run after another.
type eventMaker struct {
	r     *rand.Rand
	emit  func(Row) error
	run   int64
	start int64
	words []string   // of the run and the file, in the order of eventWords
	fired [3][]int64 // triggers that fire often in the run, for each of the three masks
}

func (g *eventMaker) newRun(number int) {
	g.run, g.start = int64(266_904+37*number), 1_435_000_000+int64(number)*30_000
	streams := []string{"physics_Main", "physics_MinBias", "physics_ZeroBias", "calibration_LArCells", "express_express"}
	kinds := []string{"AOD", "ESD", "RAW", "DAOD_RPVLL"}
	steps := []string{"merge", "recon", "daq", "deriv"}
	stream, kind := g.r.IntN(len(streams)), g.r.IntN(len(kinds))
	tag := fmt.Sprintf("f%d_m%d", 594+number%7, 1435+number%5)
	g.words = []string{
		fmt.Sprintf("data15_13TeV.%08d.%s.%s.%s.%s", g.run, streams[stream], steps[kind], kinds[kind], tag),
		streams[stream], "data15_13TeV", kinds[kind], steps[kind], tag, "AtlasProduction-20.1.5." + strconv.Itoa(number%9),
		[]string{"CERN-PROD_DATADISK", "BNL-OSG2_DATADISK", "IN2P3-CC_DATADISK"}[number%3], "evtindex", strconv.Itoa(2046 + number%4),
		fmt.Sprintf("%d;%d", 812+number%6, 395+number%8),
	}
	for m := range g.fired {
		g.fired[m] = g.triggers(78, 0, 512)
	}
}

// triggers returns n ascending numbers from the interval, fewer where some coincide.
func (g *eventMaker) triggers(n int, from, to int64) []int64 {
	set := make([]bool, to)
	for range n {
		set[from+g.r.Int64N(to-from)] = true
	}
	var out []int64
	for i, in := range set {
		if in {
			out = append(out, int64(i))
		}
	}
	return out
}

func (g *eventMaker) guid() string {
	return fmt.Sprintf("%08X-%04X-%04X-%04X-%012X", g.r.Uint32(), g.r.IntN(1<<16), g.r.IntN(1<<16), g.r.IntN(1<<16), g.r.Int64N(1<<48))
}

// file makes the events of one file: consecutive numbers, shuffled.
func (g *eventMaker) file(file, events int) error {
	words := append([]string(nil), g.words...)
	for range 4 {
		words = append(words, g.guid())
	}
	for i := range 4 {
		words = append(words, fmt.Sprintf("[DB=%08X-%d]", file*4+i, i))
	}
	for _, name := range []string{"CollectionTree", "POOLContainer(DataHeader)", "MetaData", "StreamRAW"} {
		words = append(words, "[CNT="+name+"]")
	}
	for _, class := range []string{"D82968A1-CF91-4320-B2DD-E0F739CBC7E6", "4DDBD295-EFCE-472A-9EC8-15CD35A9EB8D",
		"72FBBC6F-C8BE-4122-8790-DC627696C176", "00000000-0000-0000-0000-000000000000"} {
		words = append(words, "[CLID="+class+"]")
	}
	first := int64(file%filesPerRun) * eventsPerFile
	for _, i := range g.r.Perm(events) {
		if err := g.emit(g.event(file, int64(i), first+int64(i), words)); err != nil {
			return err
		}
	}
	return nil
}

// event makes one row, columns in the order of eventindexTable.
func (g *eventMaker) event(file int, inFile, number int64, words []string) Row {
	r := g.r
	lumi := 1 + number/220
	row := Row{{Int: g.run}, {Int: 2 * (number*31 + 1_000_000)}, {Int: lumi}, {Int: r.Int64N(3564)}, {Int: g.start + lumi*60 + r.Int64N(60)},
		{Int: r.Int64N(1_000_000_000)}, {Int: number<<8 | r.Int64N(256)}, {Int: 0}, {Int: 0}, {Int: 0}, {Int: 0}, {Int: g.run - g.run%10},
		{Int: 1 + r.Int64N(4)}, {Int: 0}, {Int: r.Int64N(3) / 2}, {Int: 0x3fffff}, {Int: 300 + lumi/40}, {Int: 100 + lumi/60},
		{Int: r.Int64N(2)}, {Int: inFile}, {Int: int64(file)<<32 | inFile}}
	row = append(row, Cell{Float: 1}, Cell{Float: float64(r.IntN(4000)) / 100}, Cell{Float: 1e33 + float64(lumi)*1e30})
	for _, w := range words {
		row = append(row, Cell{Text: w})
	}
	row = append(row, Cell{Text: fmt.Sprintf("%s-%08X-%08X", words[11], file, inFile)})
	for m := range g.fired {
		row = append(row, Cell{Text: g.mask(g.fired[m])})
	}
	return append(row, Cell{Text: g.mask(g.fired[0][:5])})
}

// mask lists triggers: most of those usual in the run and a few others.
func (g *eventMaker) mask(usual []int64) string {
	var b strings.Builder
	b.WriteByte(';')
	for _, t := range usual {
		if g.r.IntN(10) < 8 {
			b.WriteString(strconv.FormatInt(t, 10))
			b.WriteByte(';')
		}
	}
	for range len(usual) / 2 {
		b.WriteString(strconv.FormatInt(512+g.r.Int64N(1024), 10))
		b.WriteByte(';')
	}
	if g.r.IntN(12) == 0 {
		b.WriteString("317;")
	}
	return b.String()
}
