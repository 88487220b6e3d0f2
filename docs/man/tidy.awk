# scdoc begins a paragraph wherever one may begin. Where there is none (behind a title, or before the end of a block)
# mandoc's lint would have a word to say about each.
{ line[NR] = $0 }
END {
    for (i = 1; i <= NR; i++) {
        nothing_follows = i == NR || line[i + 1] ~ /^\.(P|RE|SH|SS)( |$)/
        if (line[i] != ".P" || !(last ~ /^\.(SH|SS) / || nothing_follows)) {
            print last = line[i]
        }
    }
}
