# What ruby-rrd answers. Run with librrd and with kymo's, the output must be the same.
require 'RRD'

START = 1_700_000_000

def tell(what)
  result = yield
  puts "#{what} #{result.inspect}"
rescue StandardError => error
  puts "#{what} #{error.class} #{error.message}"
end

tell('create') { RRD.create('r.rrd', '--start', START.to_s, '--step', '300', 'DS:a:GAUGE:600:U:U', 'RRA:AVERAGE:0.5:1:50') }
(1..30).each { |step| RRD.update('r.rrd', "#{START + 300 * step}:#{step * 3}") }
tell('past') { RRD.update('r.rrd', '5:5') }
tell('update_v') { RRD.updatev('r.rrd', "#{START + 9300}:7") }
# It reads one row too many.
tell('fetch') { RRD.fetch('r.rrd', '--start', START.to_s, '--end', (START + 3600).to_s, 'AVERAGE').tap { |answer| answer[3].pop } }
tell('info') { RRD.info('r.rrd').reject { |key, _| key.include?('cur_row') } }
tell('last') { RRD.last('r.rrd').to_i }
tell('tune') { RRD.tune('r.rrd', '--heartbeat', 'a:900') }
tell('resize') { RRD.resize('r.rrd', '0', 'GROW', '3') }
tell('dump') { RRD.dump('r.rrd', 'r.xml') }
tell('restore') { RRD.restore('r.xml', 'r2.rrd') }
tell('xport') { RRD.xport('-s', START.to_s, '-e', (START + 3600).to_s, 'DEF:x=r.rrd:a:AVERAGE', 'XPORT:x:it').tap { |answer| answer[5].pop } }
tell('graph') { RRD.graph('r.png', '-s', START.to_s, '-e', (START + 3600).to_s, 'DEF:x=r.rrd:a:AVERAGE', 'LINE:x#ff0000', 'PRINT:x:MAX:%.1lf') }
tell('graph bad') { RRD.graph('r.png', 'FOO') }
tell('no file') { RRD.fetch('none.rrd', 'AVERAGE') }
