//! What `HELP` prints about commands.

/// What a command does, in lines.
pub(super) fn of(name: &str) -> Option<&'static str> {
    Some(match name {
        "UPDATE" => {
            "Takes values for a database. They are in memory and in the journal when this\n\
             is answered, and in the file later.\n\
             <values> is TIME:VALUE[:VALUE...]; TIME is seconds since 1970, with a fraction\n\
             or without, and U stands for an unknown value."
        }
        "FLUSH" => "Writes what is pending of a database; the answer comes when it is written.",
        "FLUSHALL" => "Begins to write all that is pending, and answers at once.",
        "PENDING" => "Prints the updates of a database that are not yet in its file.",
        "FORGET" => "Drops what is pending of a database, and what else is known of it.",
        "QUEUE" => {
            "Prints the databases that wait to be written now, each behind the number of its updates."
        }
        "STATS" => "Prints what was counted since the daemon began.",
        "PING" => "Answers PONG.",
        "BATCH" => {
            "Until a line with a dot alone, commands are answered only where they fail: at the\n\
             end, each behind the number of its line."
        }
        "FETCH" => {
            "Prints the rows of a stretch of time: of all data sources, or of the columns that\n\
             are named. Times are seconds since 1970; below one, seconds before now."
        }
        "FETCHBIN" => {
            "As FETCH, with the values of each data source as doubles of 8 bytes, in the order\n\
             of bytes that is printed."
        }
        "INFO" => {
            "Prints the definitions of a database and the state of its file: <key> <type> <value>."
        }
        "FIRST" => "Prints the time of the oldest row of an archive, which is counted from 0.",
        "LAST" => "Prints where the step begins of the last update of a database, pending or not.",
        "CREATE" => {
            "Makes a database; one that is there is replaced, unless -O stands before the\n\
             definitions. -r <file> and -t <file> are understood as by rrdtool create."
        }
        "TUNE" => {
            "Changes a database as rrdtool tune does. <count> is that of the words behind it, which are\n\
             the command line: its name, options, the file and what comes or goes."
        }
        "DUMP" => {
            "Sends a database as XML, as rrdtool dump writes it, and ends the connection. Where that is\n\
             not possible, the answer is an error, and the connection goes on."
        }
        "LIST" => {
            "Prints the databases and directories in a directory; / is that of the daemon. With\n\
             RECURSIVE, the databases in all directories below."
        }
        "SUSPEND" => "Keeps what is pending of a database in memory until RESUME.",
        "RESUME" => "Has what is pending of a database written again.",
        "SUSPENDALL" => "Keeps what is pending of all databases that are known in memory.",
        "RESUMEALL" => "Has what is pending of all databases written again.",
        "QUIT" => "Ends the connection.",
        _ => return None,
    })
}
