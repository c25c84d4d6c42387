# At the UE: two downloads, and beside them a page of 2 MB, three times.
curl -4so /dev/null http://server/endless &
curl -4so /dev/null http://server/endless &
sleep 8
for page in 1 2 3; do
    curl -4so /dev/null -w 'page: %{time_total} s\n' http://server/2MB
    sleep 1
done
